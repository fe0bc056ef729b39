module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1x4xf32> {mulgrad.name = "x"}) -> (tensor<2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [1] : (tensor<2x1x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1x4xf32> {mulgrad.name = "x"}) -> (tensor<2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<2x1x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
