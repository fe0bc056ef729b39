module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.iota dim = 0 : tensor<3xi32>
    %1 = stablehlo.convert %0 : (tensor<3xi32>) -> tensor<3xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<3xf32>
    %3 = stablehlo.reduce(%2) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<f32> {mulgrad.name = "y"}) {
    %0 = stablehlo.iota dim = 0 : tensor<3xi32>
    %1 = stablehlo.constant dense<[0.0e+00, 1.0e+00, 2.0e+00]> : tensor<3xf32>
    %2 = stablehlo.constant dense<[0.0e+00, 1.0e+00, 4.0e+00]> : tensor<3xf32>
    %3 = stablehlo.constant dense<5.0e+00> : tensor<f32>
    return %3 : tensor<f32>
  }
}
