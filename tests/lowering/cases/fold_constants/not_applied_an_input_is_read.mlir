module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<2x3xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
// -----
unchanged
