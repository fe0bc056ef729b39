module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.add %arg0, 1.0e+00 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
// -----
unchanged
