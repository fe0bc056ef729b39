module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x3xf32> {mulgrad.name = "a"}, %arg1: tensor<[B]x3xf32> {mulgrad.name = "b"}) -> (tensor<f32> {mulgrad.name = "loss"}) {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<[B]x3xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<[B]x3xf32>
    %2 = mulgrad.mean %1 across dimensions = [0, 1] : (tensor<[B]x3xf32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
