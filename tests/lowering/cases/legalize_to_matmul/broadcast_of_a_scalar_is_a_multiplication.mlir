module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.name = "x"}) -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.name = "x"}) -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<3x4xf32>
    %1 = stablehlo.multiply %0, %arg0 : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}
