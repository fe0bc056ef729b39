module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.divide %0, true : tensor<3x5xf64>
    return %1 : tensor<3x5xf64>
  }
}
