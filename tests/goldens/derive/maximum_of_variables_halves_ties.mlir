module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "a"}, %arg1: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.maximum %arg0, %arg1 : tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "a"}, %arg1: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}, tensor<3x5xf64> {mulgrad.capture = "c0"}, tensor<3x5xf64> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.maximum %arg0, %arg1 : tensor<3x5xf64>
    return %0, %arg0, %arg1 : tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "y"}, %arg1: tensor<3x5xf64> {mulgrad.capture = "c0"}, %arg2: tensor<3x5xf64> {mulgrad.capture = "c1"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.a"}, tensor<3x5xf64> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.compare GT, %arg1, %arg2, FLOAT : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xi1>
    %1 = stablehlo.compare EQ, %arg1, %arg2, FLOAT : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xi1>
    %2 = stablehlo.multiply %arg0, 5.0e-01 : tensor<3x5xf64>
    %3 = stablehlo.select %1, %2, 0.0e+00 : tensor<3x5xi1>, tensor<3x5xf64>
    %4 = stablehlo.select %0, %arg0, %3 : tensor<3x5xi1>, tensor<3x5xf64>
    %5 = stablehlo.compare GT, %arg2, %arg1, FLOAT : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xi1>
    %6 = stablehlo.compare EQ, %arg2, %arg1, FLOAT : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xi1>
    %7 = stablehlo.multiply %arg0, 5.0e-01 : tensor<3x5xf64>
    %8 = stablehlo.select %6, %7, 0.0e+00 : tensor<3x5xi1>, tensor<3x5xf64>
    %9 = stablehlo.select %5, %arg0, %8 : tensor<3x5xi1>, tensor<3x5xf64>
    return %4, %9 : tensor<3x5xf64>, tensor<3x5xf64>
  }
}
