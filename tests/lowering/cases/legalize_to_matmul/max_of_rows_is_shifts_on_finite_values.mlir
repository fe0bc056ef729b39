module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf32> {mulgrad.name = "x"}) -> (tensor<3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<3x5xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf32> {mulgrad.name = "x"}) -> (tensor<3xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.is_finite %arg0 : (tensor<3x5xf32>) -> tensor<3x5xi1>
    %1 = stablehlo.select %0, %arg0, -3.4028235e+38 : tensor<3x5xi1>, tensor<3x5xf32>
    %2 = stablehlo.constant dense<[[0.0e+00, 0.0e+00, 0.0e+00, 0.0e+00, 1.0e+00], [1.0e+00, 0.0e+00, 0.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 1.0e+00, 0.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 1.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 0.0e+00, 1.0e+00, 0.0e+00]]> : tensor<5x5xf32>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x5xf32>) -> tensor<3x5xf32>
    %4 = stablehlo.maximum %1, %3 : tensor<3x5xf32>
    %5 = stablehlo.constant dense<[[0.0e+00, 0.0e+00, 0.0e+00, 1.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 0.0e+00, 0.0e+00, 1.0e+00], [1.0e+00, 0.0e+00, 0.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 1.0e+00, 0.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 1.0e+00, 0.0e+00, 0.0e+00]]> : tensor<5x5xf32>
    %6 = stablehlo.dot_general %4, %5, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x5xf32>) -> tensor<3x5xf32>
    %7 = stablehlo.maximum %4, %6 : tensor<3x5xf32>
    %8 = stablehlo.constant dense<[[0.0e+00, 1.0e+00, 0.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 1.0e+00, 0.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 0.0e+00, 1.0e+00, 0.0e+00], [0.0e+00, 0.0e+00, 0.0e+00, 0.0e+00, 1.0e+00], [1.0e+00, 0.0e+00, 0.0e+00, 0.0e+00, 0.0e+00]]> : tensor<5x5xf32>
    %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x5xf32>) -> tensor<3x5xf32>
    %10 = stablehlo.maximum %7, %9 : tensor<3x5xf32>
    %11 = stablehlo.constant dense<[[1.0e+00], [0.0e+00], [0.0e+00], [0.0e+00], [0.0e+00]]> : tensor<5x1xf32>
    %12 = stablehlo.dot_general %10, %11, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x1xf32>) -> tensor<3x1xf32>
    %13 = stablehlo.reshape %12 : (tensor<3x1xf32>) -> tensor<3xf32>
    %14 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
    %15 = stablehlo.convert %14 : (tensor<3x5xi1>) -> tensor<3x5xf32>
    %16 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf32>
    %17 = stablehlo.dot_general %15, %16, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x1xf32>) -> tensor<3x1xf32>
    %18 = stablehlo.reshape %17 : (tensor<3x1xf32>) -> tensor<3xf32>
    %19 = stablehlo.compare GT, %18, 0.0e+00, FLOAT : (tensor<3xf32>) -> tensor<3xi1>
    %20 = stablehlo.compare EQ, %arg0, 0x7F800000, FLOAT : (tensor<3x5xf32>) -> tensor<3x5xi1>
    %21 = stablehlo.convert %20 : (tensor<3x5xi1>) -> tensor<3x5xf32>
    %22 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf32>
    %23 = stablehlo.dot_general %21, %22, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x1xf32>) -> tensor<3x1xf32>
    %24 = stablehlo.reshape %23 : (tensor<3x1xf32>) -> tensor<3xf32>
    %25 = stablehlo.compare GT, %24, 0.0e+00, FLOAT : (tensor<3xf32>) -> tensor<3xi1>
    %26 = stablehlo.convert %0 : (tensor<3x5xi1>) -> tensor<3x5xf32>
    %27 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf32>
    %28 = stablehlo.dot_general %26, %27, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x1xf32>) -> tensor<3x1xf32>
    %29 = stablehlo.reshape %28 : (tensor<3x1xf32>) -> tensor<3xf32>
    %30 = stablehlo.compare GT, %29, 0.0e+00, FLOAT : (tensor<3xf32>) -> tensor<3xi1>
    %31 = stablehlo.select %30, %13, 0xFF800000 : tensor<3xi1>, tensor<3xf32>
    %32 = stablehlo.select %25, 0x7F800000, %31 : tensor<3xi1>, tensor<3xf32>
    %33 = stablehlo.select %19, 0x7FC00000, %32 : tensor<3xi1>, tensor<3xf32>
    return %33 : tensor<3xf32>
  }
}
