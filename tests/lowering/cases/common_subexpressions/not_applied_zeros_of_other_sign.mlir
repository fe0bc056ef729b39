module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "a"}, tensor<2x3xf32> {mulgrad.name = "b"}) {
    %0 = stablehlo.add %arg0, 0.0e+00 : tensor<2x3xf32>
    %1 = stablehlo.add %arg0, -0.0e+00 : tensor<2x3xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
// -----
unchanged
