// The comparison stays, for a target may have no i1 constants.
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[1.0e+00, -2.0e+00]> : tensor<2xf32>
    %1 = stablehlo.compare GT, %0, 0.0e+00, FLOAT : (tensor<2xf32>) -> tensor<2xi1>
    %2 = stablehlo.convert %1 : (tensor<2xi1>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main() -> (tensor<2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<[1.0e+00, -2.0e+00]> : tensor<2xf32>
    %1 = stablehlo.compare GT, %0, 0.0e+00, FLOAT : (tensor<2xf32>) -> tensor<2xi1>
    %2 = stablehlo.constant dense<[1.0e+00, 0.0e+00]> : tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
