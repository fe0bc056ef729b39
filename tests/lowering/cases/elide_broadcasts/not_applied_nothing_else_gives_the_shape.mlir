module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3xf32> {mulgrad.name = "b"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.negate %0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
// -----
unchanged
