module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<3x2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<3x4x2xf32>) -> tensor<3x2x4xf32>
    return %1 : tensor<3x2x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<3x2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %1 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
    return %1 : tensor<3x2x4xf32>
  }
}
