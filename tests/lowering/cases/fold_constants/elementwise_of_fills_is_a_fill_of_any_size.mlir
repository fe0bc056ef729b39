module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<1000000x1000000xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<1000000x1000000xf32>
    %1 = stablehlo.add %0, 2.0e+00 : tensor<1000000x1000000xf32>
    return %1 : tensor<1000000x1000000xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<1000000x1000000xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<1000000x1000000xf32>
    %1 = stablehlo.constant dense<3.0e+00> : tensor<1000000x1000000xf32>
    return %1 : tensor<1000000x1000000xf32>
  }
}
