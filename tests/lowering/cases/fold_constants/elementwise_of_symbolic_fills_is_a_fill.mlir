module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<[B]xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<[B]xf32>
    %1 = stablehlo.divide %0, 3.0e+00 : tensor<[B]xf32>
    return %1 : tensor<[B]xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<[B]xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<[B]xf32>
    %1 = stablehlo.constant dense<3.3333334e-01> : tensor<[B]xf32>
    return %1 : tensor<[B]xf32>
  }
}
