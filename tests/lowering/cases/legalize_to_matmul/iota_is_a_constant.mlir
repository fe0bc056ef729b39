module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.iota dim = 0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[0.0e+00, 1.0e+00, 2.0e+00, 3.0e+00]> : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
