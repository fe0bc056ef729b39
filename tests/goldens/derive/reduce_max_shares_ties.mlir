module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4x3xf64> {mulgrad.name = "x"}) -> (tensor<4xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<4x3xf64>) -> tensor<4xf64>
    return %0 : tensor<4xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4x3xf64> {mulgrad.name = "x"}) -> (tensor<4xf64> {mulgrad.name = "y"}, tensor<4xf64> {mulgrad.capture = "c0"}, tensor<4x3xf64> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<4x3xf64>) -> tensor<4xf64>
    return %0, %0, %arg0 : tensor<4xf64>, tensor<4xf64>, tensor<4x3xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf64> {mulgrad.seed = "y"}, %arg1: tensor<4xf64> {mulgrad.capture = "c0"}, %arg2: tensor<4x3xf64> {mulgrad.capture = "c1"}) -> (tensor<4x3xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<4xf64>) -> tensor<4x3xf64>
    %1 = stablehlo.compare EQ, %arg2, %0, FLOAT : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3xi1>
    %2 = stablehlo.convert %1 : (tensor<4x3xi1>) -> tensor<4x3xf64>
    %3 = stablehlo.reduce(%2) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf64>) -> tensor<4xf64>
    %4 = stablehlo.divide %arg0, %3 : tensor<4xf64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf64>) -> tensor<4x3xf64>
    %6 = stablehlo.select %1, %5, 0.0e+00 : tensor<4x3xi1>, tensor<4x3xf64>
    return %6 : tensor<4x3xf64>
  }
}
