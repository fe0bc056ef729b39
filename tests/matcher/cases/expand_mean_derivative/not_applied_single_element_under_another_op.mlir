// All else holds: the operand of another op, [1,1], is no g.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<1x1xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.exponential %arg0 : tensor<1x1xf64>
    %1 = stablehlo.divide %0, 1.0 : tensor<1x1xf64>
    return %1 : tensor<1x1xf64>
  }
}
