module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<5x3xf32> {mulgrad.name = "x"}) -> (tensor<1x1xf32> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] {keepdims = true} : (tensor<5x3xf32>) -> tensor<1x1xf32>
    return %0 : tensor<1x1xf32>
  }
}
