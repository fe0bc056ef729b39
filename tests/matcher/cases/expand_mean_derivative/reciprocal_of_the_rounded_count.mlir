// 3 * 3002399751580331 = 2^53 + 1 rounds to 2^53; the literal is 1/2^53, not 1/(2^53 + 1).
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<3x3002399751580331xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x3002399751580331xf64>
    %1 = stablehlo.divide %0, 9007199254740992 : tensor<3x3002399751580331xf64>
    return %1 : tensor<3x3002399751580331xf64>
  }
}
