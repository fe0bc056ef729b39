// Both are broadcasts: one of them must stay.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.name = "a"}, %arg1: tensor<f32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.name = "a"}, %arg1: tensor<f32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %arg0, %1 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
