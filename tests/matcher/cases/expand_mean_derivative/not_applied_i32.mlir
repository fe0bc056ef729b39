module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xi32> {mulgrad.seed = "loss"}) -> (tensor<3x5xi32> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<3x5xi32>
    %1 = stablehlo.divide %0, 15 : tensor<3x5xi32>
    return %1 : tensor<3x5xi32>
  }
}
