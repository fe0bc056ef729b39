module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x0xf32> {mulgrad.name = "x"}) -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [1] : (tensor<2x0xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x0xf32> {mulgrad.name = "x"}) -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<0.0e+00> : tensor<0x1xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<2x0xf32>, tensor<0x1xf32>) -> tensor<2x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x1xf32>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
