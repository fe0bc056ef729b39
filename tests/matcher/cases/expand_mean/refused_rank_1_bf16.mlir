// The rank is judged before the dtype.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<15xbf16> {mulgrad.name = "x"}) -> (tensor<bf16> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<15xbf16>) -> tensor<bf16>
    return %0 : tensor<bf16>
  }
}
