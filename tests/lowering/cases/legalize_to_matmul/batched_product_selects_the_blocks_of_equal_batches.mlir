module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1x3xf32> {mulgrad.name = "a"}, %arg1: tensor<2x3x2xf32> {mulgrad.name = "b"}) -> (tensor<2x1x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x1x3xf32>, tensor<2x3x2xf32>) -> tensor<2x1x2xf32>
    return %0 : tensor<2x1x2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x1x3xf32> {mulgrad.name = "a"}, %arg1: tensor<2x3x2xf32> {mulgrad.name = "b"}) -> (tensor<2x1x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 2, 0] : (tensor<2x3x2xf32>) -> tensor<3x2x2xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.reshape %0 : (tensor<3x2x2xf32>) -> tensor<3x4xf32>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %5 = stablehlo.constant dense<[[0.0e+00, 1.0e+00], [0.0e+00, 1.0e+00], [1.0e+00, 1.0e+00], [1.0e+00, 1.0e+00]]> : tensor<4x2xf32>
    %6 = stablehlo.constant dense<[[1.0e+00, 1.0e+00], [1.0e+00, 0.0e+00]]> : tensor<2x2xf32>
    %7 = stablehlo.dot_general %5, %6, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %8 = stablehlo.compare EQ, %7, 1.0e+00, FLOAT : (tensor<4x2xf32>) -> tensor<4x2xi1>
    %9 = stablehlo.select %8, %4, 0.0e+00 : tensor<4x2xi1>, tensor<4x2xf32>
    %10 = stablehlo.constant dense<1.0e+00> : tensor<2x1xf32>
    %11 = stablehlo.dot_general %9, %10, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x1xf32>) -> tensor<4x1xf32>
    %12 = stablehlo.reshape %11 : (tensor<4x1xf32>) -> tensor<2x1x2xf32>
    return %12 : tensor<2x1x2xf32>
  }
}
