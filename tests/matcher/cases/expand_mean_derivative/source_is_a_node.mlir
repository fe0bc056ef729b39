module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}, %arg1: tensor<1x1xf64> {mulgrad.capture = "c0"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<1x1xf64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %2 = stablehlo.divide %1, 15.0 : tensor<3x5xf64>
    return %2 : tensor<3x5xf64>
  }
}
