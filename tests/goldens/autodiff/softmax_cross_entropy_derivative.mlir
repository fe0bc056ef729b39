module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.seed = "loss"}, %arg1: tensor<4x10xf32> {mulgrad.capture = "c0"}, %arg2: tensor<4x1xf32> {mulgrad.capture = "c1"}, %arg3: tensor<4x10xf32> {mulgrad.capture = "c2"}) -> (tensor<4x10xf32> {mulgrad.name = "grad.prediction"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.divide %1, 4.0e+00 : tensor<4x1xf32>
    %3 = stablehlo.negate %2 : tensor<4x1xf32>
    %4 = stablehlo.reshape %3 : (tensor<4x1xf32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x10xf32>
    %6 = stablehlo.multiply %5, %arg1 : tensor<4x10xf32>
    %7 = stablehlo.divide %2, %arg2 : tensor<4x1xf32>
    %8 = stablehlo.reshape %7 : (tensor<4x1xf32>) -> tensor<4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<4xf32>) -> tensor<4x10xf32>
    %10 = stablehlo.multiply %9, %arg3 : tensor<4x10xf32>
    %11 = stablehlo.add %10, %6 : tensor<4x10xf32>
    return %11 : tensor<4x10xf32>
  }
}
