module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}, tensor<2x3xf32> {mulgrad.name = "z"}) {
    %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
    %1 = stablehlo.negate %0 : tensor<2x3xf32>
    %2 = stablehlo.exponential %arg0 : tensor<2x3xf32>
    %3 = stablehlo.negate %2 : tensor<2x3xf32>
    return %1, %3 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}, tensor<2x3xf32> {mulgrad.name = "z"}) {
    %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
    %1 = stablehlo.negate %0 : tensor<2x3xf32>
    return %1, %1 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
