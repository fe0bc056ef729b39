module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x2xf32> {mulgrad.name = "x"}, %arg1: tensor<2x4xf32> {mulgrad.name = "w"}, %arg2: tensor<3x4xf32> {mulgrad.name = "y"}) -> (tensor<f32> {mulgrad.name = "loss"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %1 = stablehlo.subtract %0, %arg2 : tensor<3x4xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<3x4xf32>
    %3 = mulgrad.mean %2 across dimensions = [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x2xf32> {mulgrad.name = "x"}, %arg1: tensor<2x4xf32> {mulgrad.name = "w"}, %arg2: tensor<3x4xf32> {mulgrad.name = "y"}) -> (tensor<f32> {mulgrad.name = "loss"}, tensor<3x4xf32> {mulgrad.capture = "c0"}, tensor<2x4xf32> {mulgrad.capture = "c1"}, tensor<3x2xf32> {mulgrad.capture = "c2"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %1 = stablehlo.subtract %0, %arg2 : tensor<3x4xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<3x4xf32>
    %3 = mulgrad.mean %2 across dimensions = [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
    return %3, %1, %arg1, %arg0 : tensor<f32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x2xf32>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.seed = "loss"}, %arg1: tensor<3x4xf32> {mulgrad.capture = "c0"}, %arg2: tensor<2x4xf32> {mulgrad.capture = "c1"}, %arg3: tensor<3x2xf32> {mulgrad.capture = "c2"}) -> (tensor<3x2xf32> {mulgrad.name = "grad.x"}, tensor<2x4xf32> {mulgrad.name = "grad.w"}, tensor<3x4xf32> {mulgrad.name = "grad.y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<3x4xf32>
    %2 = stablehlo.divide %1, 1.2e+01 : tensor<3x4xf32>
    %3 = stablehlo.multiply %2, %arg1 : tensor<3x4xf32>
    %4 = stablehlo.multiply %2, %arg1 : tensor<3x4xf32>
    %5 = stablehlo.add %3, %4 : tensor<3x4xf32>
    %6 = stablehlo.negate %5 : tensor<3x4xf32>
    %7 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %8 = stablehlo.dot_general %5, %7, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %9 = stablehlo.transpose %arg3, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %10 = stablehlo.dot_general %9, %5, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %8, %10, %6 : tensor<3x2xf32>, tensor<2x4xf32>, tensor<3x4xf32>
  }
}
