// A declared broadcast of another kind: no broadcast_in_dim.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f64> {mulgrad.seed = "loss"}, %arg1: tensor<3x5xf64> {mulgrad.capture = "c0"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.multiply %arg1, %arg0 : (tensor<3x5xf64>, tensor<f64>) -> tensor<3x5xf64>
    %1 = stablehlo.divide %0, 15.0 : tensor<3x5xf64>
    return %1 : tensor<3x5xf64>
  }
}
