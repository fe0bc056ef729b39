module @main attributes {mulgrad.form = "native"} {
  func.func @main(%x: tensor<3x5xf32>) -> tensor<3xf32> {
    %dead = stablehlo.tanh %x : tensor<3x5xf32>
    %rows = mulgrad.mean %x across dimensions = [1] : (tensor<3x5xf32>) -> tensor<3xf32>
    return %rows : tensor<3xf32>
  }
}
