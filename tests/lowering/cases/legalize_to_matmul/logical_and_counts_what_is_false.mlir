module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.reduce(%0) applies stablehlo.and across dimensions = [0] : (tensor<4xi1>) -> tensor<i1>
    %2 = stablehlo.convert %1 : (tensor<i1>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.not %0 : tensor<4xi1>
    %2 = stablehlo.convert %1 : (tensor<4xi1>) -> tensor<4xf32>
    %3 = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<1x4xf32>
    %4 = stablehlo.constant dense<1.0e+00> : tensor<4x1xf32>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x1xf32>) -> tensor<f32>
    %7 = stablehlo.compare GT, %6, 0.0e+00, FLOAT : (tensor<f32>) -> tensor<i1>
    %8 = stablehlo.not %7 : tensor<i1>
    %9 = stablehlo.convert %8 : (tensor<i1>) -> tensor<f32>
    return %9 : tensor<f32>
  }
}
