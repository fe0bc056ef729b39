// (2^63 - 1) * 1 rounds to 2^63 in f64; its reciprocal is 2^-63.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<9223372036854775807x1xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<9223372036854775807x1xf64>
    %1 = stablehlo.divide %0, 9223372036854775808 : tensor<9223372036854775807x1xf64>
    return %1 : tensor<9223372036854775807x1xf64>
  }
}
