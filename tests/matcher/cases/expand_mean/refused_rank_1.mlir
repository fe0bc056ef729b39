module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<15xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<15xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
