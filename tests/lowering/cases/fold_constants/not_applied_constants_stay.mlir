module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<3xf32> {mulgrad.name = "y"}, tensor<3xf32> {mulgrad.name = "z"}) {
    %0 = stablehlo.iota dim = 0 : tensor<3xf32>
    %1 = stablehlo.constant dense<2.0e+00> : tensor<3xf32>
    return %0, %1 : tensor<3xf32>, tensor<3xf32>
  }
}
// -----
unchanged
