// The identity, by convention.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [] : (tensor<3x5xf64>) -> tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
// -----
error
unsupported_reduction: %0 mulgrad.mean: expand_mean does not apply: %0 mulgrad.mean: clause 3: unsupported_reduction: found a partial reduction over axes [], expected axes [0, 1]
