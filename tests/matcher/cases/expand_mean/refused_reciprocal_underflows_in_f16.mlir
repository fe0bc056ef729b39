// 1/2^26 is 0 in f16: the sizes are judged before the dtype.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<8192x8192xf16> {mulgrad.name = "x"}) -> (tensor<f16> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<8192x8192xf16>) -> tensor<f16>
    return %0 : tensor<f16>
  }
}
