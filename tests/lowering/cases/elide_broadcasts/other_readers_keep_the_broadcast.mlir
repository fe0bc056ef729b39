module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}, %arg1: tensor<f32> {mulgrad.name = "s"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}, tensor<2x3xf32> {mulgrad.name = "z"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<2x3xf32>
    return %1, %0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}, %arg1: tensor<f32> {mulgrad.name = "s"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}, tensor<2x3xf32> {mulgrad.name = "z"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.multiply %arg0, %arg1 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    return %1, %0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
