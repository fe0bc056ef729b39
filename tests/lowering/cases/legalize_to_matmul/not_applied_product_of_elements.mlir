module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.multiply across dimensions = [0] : (tensor<4xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
// -----
unchanged
%0 reduce: the target matmul_only does not have this op; a product of elements needs slices
