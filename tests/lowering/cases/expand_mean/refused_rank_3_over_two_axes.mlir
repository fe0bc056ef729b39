// The rank is judged before the axes.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x5xf64> {mulgrad.name = "x"}) -> (tensor<1xf64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [1, 2] : (tensor<1x3x5xf64>) -> tensor<1xf64>
    return %0 : tensor<1xf64>
  }
}
// -----
error
unsupported_reduction: %0 mulgrad.mean: expand_mean does not apply: %0 mulgrad.mean: clause 2: unsupported_reduction: found an operand of rank 3, expected rank 2
