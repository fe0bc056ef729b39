module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf64> {mulgrad.name = "x"}) -> (tensor<2x3xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf64>) -> tensor<2xf64>
    %1 = stablehlo.reshape %0 : (tensor<2xf64>) -> tensor<2x1xf64>
    %2 = mulgrad.stop_gradient %1 : tensor<2x1xf64>
    %3 = stablehlo.subtract %arg0, %2 : (tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
    %4 = stablehlo.exponential %3 : tensor<2x3xf64>
    %5 = stablehlo.reduce(%4) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf64>) -> tensor<2xf64>
    %6 = stablehlo.reshape %5 : (tensor<2xf64>) -> tensor<2x1xf64>
    %7 = stablehlo.divide %4, %6 : (tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
    return %7 : tensor<2x3xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf64> {mulgrad.name = "x"}) -> (tensor<2x3xf64> {mulgrad.name = "y"}, tensor<2x1xf64> {mulgrad.capture = "c0"}, tensor<2x3xf64> {mulgrad.capture = "c1"}, tensor<2x3xf64> {mulgrad.capture = "c2"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf64>) -> tensor<2xf64>
    %1 = stablehlo.reshape %0 : (tensor<2xf64>) -> tensor<2x1xf64>
    %2 = mulgrad.stop_gradient %1 : tensor<2x1xf64>
    %3 = stablehlo.subtract %arg0, %2 : (tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
    %4 = stablehlo.exponential %3 : tensor<2x3xf64>
    %5 = stablehlo.reduce(%4) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf64>) -> tensor<2xf64>
    %6 = stablehlo.reshape %5 : (tensor<2xf64>) -> tensor<2x1xf64>
    %7 = stablehlo.divide %4, %6 : (tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
    return %7, %6, %7, %4 : tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x3xf64>, tensor<2x3xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf64> {mulgrad.seed = "y"}, %arg1: tensor<2x1xf64> {mulgrad.capture = "c0"}, %arg2: tensor<2x3xf64> {mulgrad.capture = "c1"}, %arg3: tensor<2x3xf64> {mulgrad.capture = "c2"}) -> (tensor<2x3xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.divide %arg0, %arg1 : (tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
    %1 = stablehlo.multiply %0, %arg2 : tensor<2x3xf64>
    %2 = stablehlo.negate %1 : tensor<2x3xf64>
    %3 = stablehlo.reduce(%2) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf64>) -> tensor<2xf64>
    %4 = stablehlo.reshape %3 : (tensor<2xf64>) -> tensor<2x1xf64>
    %5 = stablehlo.reshape %4 : (tensor<2x1xf64>) -> tensor<2xf64>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xf64>) -> tensor<2x3xf64>
    %7 = stablehlo.add %6, %0 : tensor<2x3xf64>
    %8 = stablehlo.multiply %7, %arg3 : tensor<2x3xf64>
    return %8 : tensor<2x3xf64>
  }
}
