module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2xf32> {mulgrad.name = "x"}, %arg1: tensor<2xf32> {mulgrad.name = "y"}) -> (tensor<2xf32> {mulgrad.name = "a"}, tensor<2xf32> {mulgrad.name = "b"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>
    %1 = stablehlo.add %arg1, %arg0 : tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32>
  }
}
// -----
unchanged
