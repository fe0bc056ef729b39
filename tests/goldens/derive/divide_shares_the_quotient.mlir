module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "a"}, %arg1: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "a"}, %arg1: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}, tensor<3x5xf64> {mulgrad.capture = "c0"}, tensor<3x5xf64> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<3x5xf64>
    return %0, %arg1, %0 : tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "y"}, %arg1: tensor<3x5xf64> {mulgrad.capture = "c0"}, %arg2: tensor<3x5xf64> {mulgrad.capture = "c1"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.a"}, tensor<3x5xf64> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<3x5xf64>
    %1 = stablehlo.multiply %0, %arg2 : tensor<3x5xf64>
    %2 = stablehlo.negate %1 : tensor<3x5xf64>
    return %0, %2 : tensor<3x5xf64>, tensor<3x5xf64>
  }
}
