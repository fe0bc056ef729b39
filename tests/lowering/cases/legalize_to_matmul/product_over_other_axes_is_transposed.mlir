module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x2xf32> {mulgrad.name = "a"}, %arg1: tensor<4x3xf32> {mulgrad.name = "b"}) -> (tensor<2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [1] : (tensor<3x2xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x2xf32> {mulgrad.name = "a"}, %arg1: tensor<4x3xf32> {mulgrad.name = "b"}) -> (tensor<2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %2 : tensor<2x4xf32>
  }
}
