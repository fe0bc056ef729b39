module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x1xf32> {mulgrad.name = "x"}) -> (tensor<[B]xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [1] : (tensor<[B]x1xf32>) -> tensor<[B]xf32>
    return %0 : tensor<[B]xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x1xf32> {mulgrad.name = "x"}) -> (tensor<[B]xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<[B]x1xf32>) -> tensor<[B]xf32>
    return %0 : tensor<[B]xf32>
  }
}
