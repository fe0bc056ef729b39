module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<12xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<4x3xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<3x4xf32>) -> tensor<12xf32>
    return %2 : tensor<12xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<12xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<4x3xf32>
    %1 = stablehlo.constant dense<5.0e-01> : tensor<3x4xf32>
    %2 = stablehlo.constant dense<5.0e-01> : tensor<12xf32>
    return %2 : tensor<12xf32>
  }
}
