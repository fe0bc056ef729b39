module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<1x1xf64> {mulgrad.name = "loss"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] {keepdims = true} : (tensor<3x5xf64>) -> tensor<1x1xf64>
    return %0 : tensor<1x1xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<1x1xf64> {mulgrad.name = "loss"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] {keepdims = true} : (tensor<3x5xf64>) -> tensor<1x1xf64>
    return %0 : tensor<1x1xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.divide %0, 1.5e+01 : tensor<3x5xf64>
    return %1 : tensor<3x5xf64>
  }
}
