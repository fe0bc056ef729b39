module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "a"}, %arg1: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<f64> {mulgrad.name = "loss"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<3x5xf64>
    %1 = mulgrad.mean %0 across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    return %1 : tensor<f64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "a"}, %arg1: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<f64> {mulgrad.name = "loss"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<3x5xf64>
    %1 = mulgrad.mean %0 across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    return %1 : tensor<f64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f64> {mulgrad.seed = "loss"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.a"}, tensor<3x5xf64> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<f64>) -> tensor<1x1xf64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %2 = stablehlo.divide %1, 1.5e+01 : tensor<3x5xf64>
    return %2, %2 : tensor<3x5xf64>, tensor<3x5xf64>
  }
}
