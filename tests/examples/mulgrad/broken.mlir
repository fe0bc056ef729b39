module @main attributes {mulgrad.form = "native"} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %x : tensor<4xf32>
    %1 = stablehlo.add %0 %x : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
