module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x4xf32> {mulgrad.name = "a"}, %arg1: tensor<1x4xf32> {mulgrad.name = "b"}) -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.add %arg0, %arg1 : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x4xf32> {mulgrad.name = "a"}, %arg1: tensor<1x4xf32> {mulgrad.name = "b"}) -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<3x1xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
    %2 = stablehlo.add %arg0, %1 : tensor<3x4xf32>
    return %2 : tensor<3x4xf32>
  }
}
