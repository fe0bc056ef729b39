module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x5xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<3x5xf32>) -> tensor<1x15xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<15x1xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<1x15xf32>, tensor<15x1xf32>) -> tensor<1x1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x1xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
