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
    %11 = stablehlo.compare NE, %0, %0, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %12 = stablehlo.convert %11 : (tensor<2xi1>) -> tensor<2xf32>
    %13 = stablehlo.reshape %12 : (tensor<2xf32>) -> tensor<1x2xf32>
    %14 = stablehlo.constant dense<1.0e+00> : tensor<2x1xf32>
    %15 = stablehlo.dot_general %13, %14, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x1xf32>) -> tensor<f32>
    %17 = stablehlo.compare GT, %16, 0.0e+00, FLOAT : (tensor<f32>) -> tensor<i1>
    %18 = stablehlo.compare EQ, %0, 0x7F800000, FLOAT : (tensor<2xf32>) -> tensor<2xi1>
    %19 = stablehlo.convert %18 : (tensor<2xi1>) -> tensor<2xf32>
    %20 = stablehlo.reshape %19 : (tensor<2xf32>) -> tensor<1x2xf32>
    %21 = stablehlo.constant dense<1.0e+00> : tensor<2x1xf32>
    %22 = stablehlo.dot_general %20, %21, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %23 = stablehlo.reshape %22 : (tensor<1x1xf32>) -> tensor<f32>
    %24 = stablehlo.compare GT, %23, 0.0e+00, FLOAT : (tensor<f32>) -> tensor<i1>
    %25 = stablehlo.convert %1 : (tensor<2xi1>) -> tensor<2xf32>
    %26 = stablehlo.reshape %25 : (tensor<2xf32>) -> tensor<1x2xf32>
    %27 = stablehlo.constant dense<1.0e+00> : tensor<2x1xf32>
    %28 = stablehlo.dot_general %26, %27, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %29 = stablehlo.reshape %28 : (tensor<1x1xf32>) -> tensor<f32>
    %30 = stablehlo.compare GT, %29, 0.0e+00, FLOAT : (tensor<f32>) -> tensor<i1>
    %31 = stablehlo.select %30, %10, 0xFF800000 : tensor<i1>, tensor<f32>
    %32 = stablehlo.select %24, 0x7F800000, %31 : tensor<i1>, tensor<f32>
    %33 = stablehlo.select %17, 0x7FC00000, %32 : tensor<i1>, tensor<f32>
    %34 = stablehlo.negate %33 : tensor<f32>
    return %34 : tensor<f32>
  }
}
