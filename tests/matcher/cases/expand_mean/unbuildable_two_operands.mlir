module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}, %arg1: tensor<3x5xf64> {mulgrad.name = "y"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0, %arg1 across dimensions = [0, 1] : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
