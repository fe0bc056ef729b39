module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x1xf32> {mulgrad.name = "x"}) -> (tensor<3x1xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x1xf32>, tensor<1x1xf32>) -> tensor<3x1xf64>
    return %1 : tensor<3x1xf64>
  }
}
// -----
unchanged
