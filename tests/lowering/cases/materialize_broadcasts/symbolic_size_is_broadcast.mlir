module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x3xf32> {mulgrad.name = "x"}, %arg1: tensor<1x3xf32> {mulgrad.name = "row"}) -> (tensor<[B]x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.add %arg0, %arg1 : (tensor<[B]x3xf32>, tensor<1x3xf32>) -> tensor<[B]x3xf32>
    return %0 : tensor<[B]x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x3xf32> {mulgrad.name = "x"}, %arg1: tensor<1x3xf32> {mulgrad.name = "row"}) -> (tensor<[B]x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<[B]x3xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<[B]x3xf32>
    return %1 : tensor<[B]x3xf32>
  }
}
