module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.negate %1 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "x"}) -> (tensor<2x3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.negate %arg0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
