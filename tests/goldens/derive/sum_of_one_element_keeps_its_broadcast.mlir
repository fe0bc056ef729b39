module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.name = "x"}) -> (tensor<1x1xf64> {mulgrad.name = "loss"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<1x1xf64>) -> tensor<1xf64>
    %1 = stablehlo.reshape %0 : (tensor<1xf64>) -> tensor<1x1xf64>
    return %1 : tensor<1x1xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.name = "x"}) -> (tensor<1x1xf64> {mulgrad.name = "loss"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<1x1xf64>) -> tensor<1xf64>
    %1 = stablehlo.reshape %0 : (tensor<1xf64>) -> tensor<1x1xf64>
    return %1 : tensor<1x1xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<1x1xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<1x1xf64>) -> tensor<1xf64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<1xf64>) -> tensor<1x1xf64>
    return %1 : tensor<1x1xf64>
  }
}
