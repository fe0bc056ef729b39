module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<2xi1> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[1.0e+00, -2.0e+00]> : tensor<2xf32>
    %1 = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
    return %1 : tensor<2xi1>
  }
}
// -----
unchanged
