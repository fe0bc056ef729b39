// A partial reduction, not a symbolic one.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x5xf64> {mulgrad.name = "x"}) -> (tensor<[B]xf64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [1] : (tensor<[B]x5xf64>) -> tensor<[B]xf64>
    return %0 : tensor<[B]xf64>
  }
}
