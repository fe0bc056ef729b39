// The rank is judged before the axes.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x5xf64> {mulgrad.name = "x"}) -> (tensor<1xf64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [1, 2] : (tensor<1x3x5xf64>) -> tensor<1xf64>
    return %0 : tensor<1xf64>
  }
}
