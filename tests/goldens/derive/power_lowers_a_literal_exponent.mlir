module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf64> {mulgrad.name = "x"}) -> (tensor<4xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.power %arg0, 3.0e+00 : tensor<4xf64>
    return %0 : tensor<4xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf64> {mulgrad.name = "x"}) -> (tensor<4xf64> {mulgrad.name = "y"}, tensor<4xf64> {mulgrad.capture = "c0"}) {
    %0 = stablehlo.power %arg0, 3.0e+00 : tensor<4xf64>
    return %0, %arg0 : tensor<4xf64>, tensor<4xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf64> {mulgrad.seed = "y"}, %arg1: tensor<4xf64> {mulgrad.capture = "c0"}) -> (tensor<4xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.power %arg1, 2.0e+00 : tensor<4xf64>
    %1 = stablehlo.multiply %0, 3.0e+00 : tensor<4xf64>
    %2 = stablehlo.multiply %arg0, %1 : tensor<4xf64>
    return %2 : tensor<4xf64>
  }
}
