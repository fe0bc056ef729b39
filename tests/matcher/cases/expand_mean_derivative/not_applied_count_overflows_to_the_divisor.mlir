// (2^62 + 1) * 4 wraps around to 4 in 64 bits.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<4611686018427387905x4xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<4611686018427387905x4xf64>
    %1 = stablehlo.divide %0, 4 : tensor<4611686018427387905x4xf64>
    return %1 : tensor<4611686018427387905x4xf64>
  }
}
