// Nothing depends on %0.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<3x5xf64>) -> tensor<5xf64>
    %1 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    return %1 : tensor<f64>
  }
}
