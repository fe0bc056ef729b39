module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x1xf32> {mulgrad.name = "x"}) -> (tensor<3x1xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [0] : (tensor<1x3x1xf32>) -> tensor<3x1xf32>
    return %0 : tensor<3x1xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x3x1xf32> {mulgrad.name = "x"}) -> (tensor<3x1xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<1x3x1xf32>) -> tensor<3x1xf32>
    return %0 : tensor<3x1xf32>
  }
}
