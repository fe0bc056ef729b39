// 2^40 * 2^40 is exactly 2^80 in f64, but overflows.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<1099511627776x1099511627776xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<1099511627776x1099511627776xf64>
    %1 = stablehlo.divide %0, 1208925819614629174706176 : tensor<1099511627776x1099511627776xf64>
    return %1 : tensor<1099511627776x1099511627776xf64>
  }
}
