module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<3x4x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
    %2 = stablehlo.transpose %1, dims = [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
    %3 = stablehlo.transpose %2, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    return %3 : tensor<3x4x2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<3x4x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %1 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %2 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    return %2 : tensor<3x4x2xf32>
  }
}
