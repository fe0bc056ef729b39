module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x2xf32> {mulgrad.name = "x"}, %arg1: tensor<2x3xf32> {mulgrad.name = "b"}) -> (tensor<3x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  }
}
// -----
unchanged
