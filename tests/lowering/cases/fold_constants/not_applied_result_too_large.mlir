module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<2x100000xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[1.0e+00, 2.0e+00]> : tensor<2xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x100000xf32>
    return %1 : tensor<2x100000xf32>
  }
}
// -----
unchanged
