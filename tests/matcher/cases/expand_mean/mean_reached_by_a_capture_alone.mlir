module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "y"}, tensor<1x1xf64> {mulgrad.capture = "c0"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] {keepdims = true} : (tensor<3x5xf64>) -> tensor<1x1xf64>
    %1 = stablehlo.negate %arg0 : tensor<3x5xf64>
    return %1, %0 : tensor<3x5xf64>, tensor<1x1xf64>
  }
}
