module @main attributes {mulgrad.form = "native"} {
  func.func @main(%x: tensor<[B]x5xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "loss"}) {
    %e = stablehlo.exponential %x : tensor<[B]x5xf32>
    %m = mulgrad.mean %e across dimensions = [0, 1] : (tensor<[B]x5xf32>) -> tensor<f32>
    return %m : tensor<f32>
  }
}
