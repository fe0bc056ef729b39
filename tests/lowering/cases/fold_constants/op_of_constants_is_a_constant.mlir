module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[1.0e+00, 2.0e+00]> : tensor<2xf32>
    %1 = stablehlo.constant dense<[3.0e+00, -0.0e+00]> : tensor<2xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[1.0e+00, 2.0e+00]> : tensor<2xf32>
    %1 = stablehlo.constant dense<[3.0e+00, -0.0e+00]> : tensor<2xf32>
    %2 = stablehlo.constant dense<[3.0e+00, -0.0e+00]> : tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
