module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "x"}) -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.slice %arg0 [1:3] : (tensor<4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----
unchanged
%0 slice: the target matmul_only does not have this op; there is no rule for it
