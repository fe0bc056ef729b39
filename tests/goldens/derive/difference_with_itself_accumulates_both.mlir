module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.subtract %arg0, %arg0 : tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.subtract %arg0, %arg0 : tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "y"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.negate %arg0 : tensor<3x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<3x5xf64>
    return %1 : tensor<3x5xf64>
  }
}
