module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<0x3xf32> {mulgrad.name = "x"}) -> (tensor<3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
// -----
unchanged
