// All else holds: an input, [1,1], is no broadcast.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<1x1xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.divide %arg0, 1.0 : tensor<1x1xf64>
    return %0 : tensor<1x1xf64>
  }
}
