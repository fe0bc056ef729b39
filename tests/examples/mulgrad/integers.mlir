module @main attributes {mulgrad.form = "native"} {
  func.func @main(%n: tensor<4xi32>, %x: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
    %0 = stablehlo.add %n, %n : tensor<4xi32>
    %1 = stablehlo.tanh %x : tensor<4xf32>
    return %0, %1 : tensor<4xi32>, tensor<4xf32>
  }
}
