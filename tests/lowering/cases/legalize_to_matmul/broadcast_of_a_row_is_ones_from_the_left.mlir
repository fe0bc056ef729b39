module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "x"}) -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "x"}) -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf32>
    %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] : (tensor<3x1xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
    return %2 : tensor<3x4xf32>
  }
}
