module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.seed = "loss"}, %arg1: tensor<4x1xf32> {mulgrad.capture = "c0"}, %arg2: tensor<4x1xf32> {mulgrad.capture = "c1"}, %arg3: tensor<4x10xf32> {mulgrad.capture = "c2"}) -> (tensor<4x10xf32> {mulgrad.name = "grad.prediction"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.divide %1, 4.0e+00 : tensor<4x1xf32>
    %3 = stablehlo.negate %2 : tensor<4x1xf32>
    %4 = stablehlo.reshape %3 : (tensor<4x1xf32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x10xf32>
    %6 = stablehlo.iota dim = 1 : tensor<1x10xf32>
    %7 = stablehlo.compare EQ, %arg1, %6, FLOAT : (tensor<4x1xf32>, tensor<1x10xf32>) -> tensor<4x10xi1>
    %8 = stablehlo.select %7, %5, 0.0e+00 : tensor<4x10xi1>, tensor<4x10xf32>
    %9 = stablehlo.divide %2, %arg2 : tensor<4x1xf32>
    %10 = stablehlo.reshape %9 : (tensor<4x1xf32>) -> tensor<4xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<4xf32>) -> tensor<4x10xf32>
    %12 = stablehlo.multiply %11, %arg3 : tensor<4x10xf32>
    %13 = stablehlo.add %12, %8 : tensor<4x10xf32>
    return %13 : tensor<4x10xf32>
  }
}
