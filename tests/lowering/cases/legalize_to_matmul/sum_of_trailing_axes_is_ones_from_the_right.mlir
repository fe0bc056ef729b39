module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x3x4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf32> {mulgrad.name = "x"}) -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<12x1xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x12xf32>, tensor<12x1xf32>) -> tensor<2x1xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x1xf32>) -> tensor<2xf32>
    return %3 : tensor<2xf32>
  }
}
