module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf32> {mulgrad.name = "x"}) -> (tensor<3x1xf32> {mulgrad.name = "y"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [1] {keepdims = true} : (tensor<3x5xf32>) -> tensor<3x1xf32>
    return %0 : tensor<3x1xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf32> {mulgrad.name = "x"}) -> (tensor<3x1xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x1xf32>) -> tensor<3x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<3x1xf32>) -> tensor<3xf32>
    %3 = stablehlo.divide %2, 5.0e+00 : tensor<3xf32>
    %4 = stablehlo.reshape %3 : (tensor<3xf32>) -> tensor<3x1xf32>
    return %4 : tensor<3x1xf32>
  }
}
