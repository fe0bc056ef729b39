module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<6xf64> {mulgrad.name = "x"}) -> (tensor<3xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.slice %arg0 [1:6:2] : (tensor<6xf64>) -> tensor<3xf64>
    return %0 : tensor<3xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<6xf64> {mulgrad.name = "x"}) -> (tensor<3xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.slice %arg0 [1:6:2] : (tensor<6xf64>) -> tensor<3xf64>
    return %0 : tensor<3xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3xf64> {mulgrad.seed = "y"}) -> (tensor<6xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.constant dense<0.0e+00> : tensor<f64>
    %1 = stablehlo.pad %arg0, %0, low = [1], high = [0], interior = [1] : (tensor<3xf64>, tensor<f64>) -> tensor<6xf64>
    return %1 : tensor<6xf64>
  }
}
