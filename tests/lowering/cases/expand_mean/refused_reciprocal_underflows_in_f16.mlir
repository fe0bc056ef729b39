// 1/2^26 is 0 in f16: the sizes are judged before the dtype.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<8192x8192xf16> {mulgrad.name = "x"}) -> (tensor<f16> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<8192x8192xf16>) -> tensor<f16>
    return %0 : tensor<f16>
  }
}
// -----
error
unsupported_reduction: %0 mulgrad.mean: expand_mean does not apply: %0 mulgrad.mean: clause 4: unsupported_reduction: found sizes [8192, 8192], expected a product whose reciprocal is finite and not zero in f16
