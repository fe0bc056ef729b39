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
    %14 = stablehlo.maximum %arg0, 0.0e+00 : tensor<3x5xf32>
    %15 = stablehlo.select %0, 1.0e+00, %14 : tensor<3x5xi1>, tensor<3x5xf32>
    %16 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf32>
    %17 = stablehlo.dot_general %15, %16, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x1xf32>) -> tensor<3x1xf32>
    %18 = stablehlo.reshape %17 : (tensor<3x1xf32>) -> tensor<3xf32>
    %19 = stablehlo.compare GT, %18, 0.0e+00, FLOAT : (tensor<3xf32>) -> tensor<3xi1>
    %20 = stablehlo.select %19, %13, 0xFF800000 : tensor<3xi1>, tensor<3xf32>
    %21 = stablehlo.is_finite %18 : (tensor<3xf32>) -> tensor<3xi1>
    %22 = stablehlo.select %21, %20, %18 : tensor<3xi1>, tensor<3xf32>
    return %22 : tensor<3xf32>
  }
}
