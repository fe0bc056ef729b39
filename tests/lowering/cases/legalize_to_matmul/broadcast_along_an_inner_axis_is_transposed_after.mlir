module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x4xf32> {mulgrad.name = "x"}) -> (tensor<2x3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x4xf32> {mulgrad.name = "x"}) -> (tensor<2x3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<2x4xf32>) -> tensor<8x1xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<1x3xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<8x1xf32>, tensor<1x3xf32>) -> tensor<8x3xf32>
    %3 = stablehlo.reshape %2 : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
    %4 = stablehlo.transpose %3, dims = [0, 2, 1] : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
    return %4 : tensor<2x3x4xf32>
  }
}
