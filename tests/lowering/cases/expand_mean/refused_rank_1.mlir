module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<15xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<15xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
// -----
error
unsupported_reduction: %0 mulgrad.mean: expand_mean does not apply: %0 mulgrad.mean: clause 2: unsupported_reduction: found an operand of rank 1, expected rank 2
