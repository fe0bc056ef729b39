// As the derivative of a mean without keepdims: six nodes.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.seed = "loss"}) -> (tensor<5x3xf32> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<5x3xf32>
    %2 = stablehlo.divide %1, 15.0 : tensor<5x3xf32>
    return %2 : tensor<5x3xf32>
  }
}
