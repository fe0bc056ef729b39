module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "x"}) {
    return %arg0 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "x"}) {
    return %arg0 : tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    return %arg0 : tensor<3x5xf64>
  }
}
