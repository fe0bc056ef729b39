module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x1xf32> {mulgrad.name = "x"}) -> (tensor<1x3x1xf32> {mulgrad.name = "y"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [2] {keepdims = true} : (tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
    return %0 : tensor<1x3x1xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x1xf32> {mulgrad.name = "x"}) -> (tensor<1x3x1xf32> {mulgrad.name = "y"}) {
    return %arg0 : tensor<1x3x1xf32>
  }
}
