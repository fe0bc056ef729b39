module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}, %arg1: tensor<2x1xf32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}, %arg1: tensor<2x1xf32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.add %arg1, %arg0 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
