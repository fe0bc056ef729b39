module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3x4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<1x6xf32>
    %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] : (tensor<1x6xf32>, tensor<6x4xf32>) -> tensor<1x4xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x4xf32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
