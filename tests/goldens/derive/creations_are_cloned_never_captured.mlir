module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<3x5xf64>
    %1 = stablehlo.iota dim = 1 : tensor<3x5xf64>
    %2 = stablehlo.multiply %1, %arg0 : tensor<3x5xf64>
    %3 = stablehlo.multiply %arg0, %0 : tensor<3x5xf64>
    %4 = stablehlo.add %3, %2 : tensor<3x5xf64>
    return %4 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<3x5xf64>
    %1 = stablehlo.iota dim = 1 : tensor<3x5xf64>
    %2 = stablehlo.multiply %1, %arg0 : tensor<3x5xf64>
    %3 = stablehlo.multiply %arg0, %0 : tensor<3x5xf64>
    %4 = stablehlo.add %3, %2 : tensor<3x5xf64>
    return %4 : tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "y"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.constant dense<5.0e-01> : tensor<3x5xf64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<3x5xf64>
    %2 = stablehlo.iota dim = 1 : tensor<3x5xf64>
    %3 = stablehlo.multiply %arg0, %2 : tensor<3x5xf64>
    %4 = stablehlo.add %3, %1 : tensor<3x5xf64>
    return %4 : tensor<3x5xf64>
  }
}
