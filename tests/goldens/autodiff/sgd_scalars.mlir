module @scalars attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<i64> {mulgrad.name = "count"}) -> (tensor<f32> {mulgrad.name = "rate"}) {
    %0 = stablehlo.constant dense<1.0e-01> : tensor<f32>
    return %0 : tensor<f32>
  }
}
