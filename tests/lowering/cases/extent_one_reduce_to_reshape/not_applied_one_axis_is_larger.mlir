module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x1xf32> {mulgrad.name = "x"}) -> (tensor<1xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x3x1xf32>) -> tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}
// -----
unchanged
