module @scalars attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<i64> {mulgrad.name = "count"}) -> (tensor<f32> {mulgrad.name = "rate"}, tensor<f32> {mulgrad.name = "correction1"}, tensor<f32> {mulgrad.name = "correction2"}) {
    %0 = stablehlo.constant dense<1.0e-03> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<f32>
    %2 = stablehlo.multiply %1, -1.05360515e-01 : tensor<f32>
    %3 = stablehlo.exponential_minus_one %2 : tensor<f32>
    %4 = stablehlo.negate %3 : tensor<f32>
    %5 = stablehlo.multiply %1, -1.0005003e-03 : tensor<f32>
    %6 = stablehlo.exponential_minus_one %5 : tensor<f32>
    %7 = stablehlo.negate %6 : tensor<f32>
    return %0, %4, %7 : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
