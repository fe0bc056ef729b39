module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.multiply across dimensions = [0] : (tensor<4xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "y"}, tensor<4xf64> {mulgrad.capture = "c0"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.multiply across dimensions = [0] : (tensor<4xf64>) -> tensor<f64>
    return %0, %arg0 : tensor<f64>, tensor<4xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f64> {mulgrad.seed = "y"}, %arg1: tensor<4xf64> {mulgrad.capture = "c0"}) -> (tensor<4xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<f64>
    %2 = stablehlo.pad %arg1, %1, low = [1], high = [-1], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %3 = stablehlo.pad %2, %1, low = [1], high = [-1], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %4 = stablehlo.multiply %2, %3 : tensor<4xf64>
    %5 = stablehlo.pad %4, %1, low = [2], high = [-2], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %6 = stablehlo.multiply %4, %5 : tensor<4xf64>
    %7 = stablehlo.pad %arg1, %1, low = [-1], high = [1], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %8 = stablehlo.pad %7, %1, low = [-1], high = [1], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %9 = stablehlo.multiply %7, %8 : tensor<4xf64>
    %10 = stablehlo.pad %9, %1, low = [-2], high = [2], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %11 = stablehlo.multiply %9, %10 : tensor<4xf64>
    %12 = stablehlo.multiply %6, %11 : tensor<4xf64>
    %13 = stablehlo.multiply %0, %12 : tensor<4xf64>
    return %13 : tensor<4xf64>
  }
}
