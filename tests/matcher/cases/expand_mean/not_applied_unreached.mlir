// Nothing depends on either mean.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<3x5xf64>) -> tensor<5xf64>
    %1 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    return %arg0 : tensor<3x5xf64>
  }
}
