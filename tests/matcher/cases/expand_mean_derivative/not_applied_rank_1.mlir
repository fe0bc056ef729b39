module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1xf64> {mulgrad.seed = "loss"}) -> (tensor<15xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<1xf64>) -> tensor<15xf64>
    %1 = stablehlo.divide %0, 15 : tensor<15xf64>
    return %1 : tensor<15xf64>
  }
}
