module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<3x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<4xf32>
    %1 = stablehlo.constant dense<5.0e-01> : tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}
