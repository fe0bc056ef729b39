module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
    %1 = stablehlo.negate %0 : tensor<2x3xf32>
    %2 = stablehlo.abs %arg0 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.abs %arg0 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
