module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.divide %arg0, 15.0 : tensor<3x5xf64>
    return %0 : tensor<3x5xf64>
  }
}
