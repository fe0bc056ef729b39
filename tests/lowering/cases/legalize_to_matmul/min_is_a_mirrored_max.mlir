module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.minimum across dimensions = [0] : (tensor<2xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.negate %arg0 : tensor<2xf32>
    %1 = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
    %2 = stablehlo.select %1, %0, -3.4028235e+38 : tensor<2xi1>, tensor<2xf32>
    %3 = stablehlo.reshape %2 : (tensor<2xf32>) -> tensor<1x2xf32>
    %4 = stablehlo.constant dense<[[0.0e+00, 1.0e+00], [1.0e+00, 0.0e+00]]> : tensor<2x2xf32>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
    %6 = stablehlo.maximum %3, %5 : tensor<1x2xf32>
    %7 = stablehlo.constant dense<[[1.0e+00], [0.0e+00]]> : tensor<2x1xf32>
    %8 = stablehlo.dot_general %6, %7, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %9 = stablehlo.reshape %8 : (tensor<1x1xf32>) -> tensor<1xf32>
    %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
    %11 = stablehlo.maximum %0, 0.0e+00 : tensor<2xf32>
    %12 = stablehlo.select %1, 1.0e+00, %11 : tensor<2xi1>, tensor<2xf32>
    %13 = stablehlo.reshape %12 : (tensor<2xf32>) -> tensor<1x2xf32>
    %14 = stablehlo.constant dense<1.0e+00> : tensor<2x1xf32>
    %15 = stablehlo.dot_general %13, %14, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x1xf32>) -> tensor<f32>
    %17 = stablehlo.compare GT, %16, 0.0e+00, FLOAT : (tensor<f32>) -> tensor<i1>
    %18 = stablehlo.select %17, %10, 0xFF800000 : tensor<i1>, tensor<f32>
    %19 = stablehlo.is_finite %16 : (tensor<f32>) -> tensor<i1>
    %20 = stablehlo.select %19, %18, %16 : tensor<i1>, tensor<f32>
    %21 = stablehlo.negate %20 : tensor<f32>
    return %21 : tensor<f32>
  }
}
