module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x0xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<3x0xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
