module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.maximum %arg0, 0.0e+00 : tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}, tensor<3x5xf64> {mulgrad.capture = "c0"}) {
    %0 = stablehlo.maximum %arg0, 0.0e+00 : tensor<3x5xf64>
    return %0, %arg0 : tensor<3x5xf64>, tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "y"}, %arg1: tensor<3x5xf64> {mulgrad.capture = "c0"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.compare GT, %arg1, 0.0e+00, FLOAT : (tensor<3x5xf64>) -> tensor<3x5xi1>
    %1 = stablehlo.select %0, %arg0, 0.0e+00 : tensor<3x5xi1>, tensor<3x5xf64>
    return %1 : tensor<3x5xf64>
  }
}
