// What a device without an exponential cannot do: a softmax and its gradient.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4x6xf32> {mulgrad.name = "scores"}) -> (tensor<4x6xf32> {mulgrad.name = "weights"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>) -> tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
    %2 = mulgrad.stop_gradient %1 : tensor<4x6xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<4x6xf32>
    %4 = stablehlo.exponential %3 : tensor<4x6xf32>
    %5 = stablehlo.reduce(%4) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>) -> tensor<4xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
    %7 = stablehlo.divide %4, %6 : tensor<4x6xf32>
    return %7 : tensor<4x6xf32>
  }
}
