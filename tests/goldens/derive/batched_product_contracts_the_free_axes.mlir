module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf64> {mulgrad.name = "a"}, %arg1: tensor<4x2x5xf64> {mulgrad.name = "b"}) -> (tensor<2x3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x3x4xf64>, tensor<4x2x5xf64>) -> tensor<2x3x5xf64>
    return %0 : tensor<2x3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4xf64> {mulgrad.name = "a"}, %arg1: tensor<4x2x5xf64> {mulgrad.name = "b"}) -> (tensor<2x3x5xf64> {mulgrad.name = "y"}, tensor<4x2x5xf64> {mulgrad.capture = "c0"}, tensor<2x3x4xf64> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x3x4xf64>, tensor<4x2x5xf64>) -> tensor<2x3x5xf64>
    return %0, %arg1, %arg0 : tensor<2x3x5xf64>, tensor<4x2x5xf64>, tensor<2x3x4xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x5xf64> {mulgrad.seed = "y"}, %arg1: tensor<4x2x5xf64> {mulgrad.capture = "c0"}, %arg2: tensor<2x3x4xf64> {mulgrad.capture = "c1"}) -> (tensor<2x3x4xf64> {mulgrad.name = "grad.a"}, tensor<4x2x5xf64> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [2] x [2] : (tensor<2x3x5xf64>, tensor<4x2x5xf64>) -> tensor<2x3x4xf64>
    %1 = stablehlo.dot_general %arg2, %arg0, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x3x4xf64>, tensor<2x3x5xf64>) -> tensor<2x4x5xf64>
    %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<2x4x5xf64>) -> tensor<4x2x5xf64>
    return %0, %2 : tensor<2x3x4xf64>, tensor<4x2x5xf64>
  }
}
