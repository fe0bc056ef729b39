module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x1xf64> {mulgrad.name = "a"}, %arg1: tensor<f64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f64>) -> tensor<1x5xf64>
    %1 = stablehlo.multiply %arg0, %0 : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    return %1 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x1xf64> {mulgrad.name = "a"}, %arg1: tensor<f64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}, tensor<1x5xf64> {mulgrad.capture = "c0"}, tensor<3x1xf64> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f64>) -> tensor<1x5xf64>
    %1 = stablehlo.multiply %arg0, %0 : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    return %1, %0, %arg0 : tensor<3x5xf64>, tensor<1x5xf64>, tensor<3x1xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "y"}, %arg1: tensor<1x5xf64> {mulgrad.capture = "c0"}, %arg2: tensor<3x1xf64> {mulgrad.capture = "c1"}) -> (tensor<3x1xf64> {mulgrad.name = "grad.a"}, tensor<f64> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.multiply %arg0, %arg1 : (tensor<3x5xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.reduce(%0) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf64>) -> tensor<3xf64>
    %2 = stablehlo.reshape %1 : (tensor<3xf64>) -> tensor<3x1xf64>
    %3 = stablehlo.multiply %arg0, %arg2 : (tensor<3x5xf64>, tensor<3x1xf64>) -> tensor<3x5xf64>
    %4 = stablehlo.reduce(%3) applies stablehlo.add across dimensions = [0] : (tensor<3x5xf64>) -> tensor<5xf64>
    %5 = stablehlo.reshape %4 : (tensor<5xf64>) -> tensor<1x5xf64>
    %6 = stablehlo.reduce(%5) applies stablehlo.add across dimensions = [1] : (tensor<1x5xf64>) -> tensor<1xf64>
    %7 = stablehlo.reshape %6 : (tensor<1xf64>) -> tensor<f64>
    return %2, %7 : tensor<3x1xf64>, tensor<f64>
  }
}
