module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1xi1> {mulgrad.name = "p"}, %arg1: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.select %arg0, %arg1, 0.0e+00 : (tensor<2x1xi1>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1xi1> {mulgrad.name = "p"}, %arg1: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2x1xi1>) -> tensor<2x3xi1>
    %1 = stablehlo.select %0, %arg1, 0.0e+00 : tensor<2x3xi1>, tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
