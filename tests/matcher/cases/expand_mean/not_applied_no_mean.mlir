module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "s"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
