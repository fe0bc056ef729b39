module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3xf32> {mulgrad.name = "x"}) -> (tensor<1x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf32>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<1x1xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    return %1 : tensor<1x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3xf32> {mulgrad.name = "x"}) -> (tensor<1x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf32>
    return %arg0 : tensor<1x3xf32>
  }
}
