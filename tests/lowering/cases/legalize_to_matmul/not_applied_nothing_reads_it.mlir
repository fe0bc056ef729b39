module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>) -> tensor<f32>
    %1 = stablehlo.negate %arg0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
// -----
unchanged
