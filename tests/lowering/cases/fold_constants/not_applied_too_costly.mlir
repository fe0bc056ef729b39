module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<200x200xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<200x50000xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<50000x200xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<200x50000xf32>, tensor<50000x200xf32>) -> tensor<200x200xf32>
    return %2 : tensor<200x200xf32>
  }
}
// -----
unchanged
