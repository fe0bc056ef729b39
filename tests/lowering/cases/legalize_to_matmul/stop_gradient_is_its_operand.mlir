module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = mulgrad.stop_gradient %arg0 : tensor<4xf32>
    %1 = stablehlo.negate %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
