module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1xf32> {mulgrad.name = "a"}, %arg1: tensor<3xf32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1xf32> {mulgrad.name = "a"}, %arg1: tensor<3xf32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.reshape %arg1 : (tensor<3xf32>) -> tensor<1x3xf32>
    %3 = stablehlo.add %arg0, %2 : (tensor<2x1xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
    return %3 : tensor<2x3xf32>
  }
}
