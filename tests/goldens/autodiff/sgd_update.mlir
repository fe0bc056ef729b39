module @update attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "parameter"}, %arg1: tensor<2x3xf32> {mulgrad.name = "gradient"}, %arg2: tensor<2x3xf32> {mulgrad.name = "momentum"}, %arg3: tensor<f32> {mulgrad.name = "rate"}) -> (tensor<2x3xf32> {mulgrad.name = "parameter"}, tensor<2x3xf32> {mulgrad.name = "momentum"}) {
    %0 = stablehlo.multiply 1.0e-02, %arg0 : tensor<2x3xf32>
    %1 = stablehlo.add %arg1, %0 : tensor<2x3xf32>
    %2 = stablehlo.multiply 9.0e-01, %arg2 : tensor<2x3xf32>
    %3 = stablehlo.add %2, %1 : tensor<2x3xf32>
    %4 = stablehlo.multiply %arg3, %3 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x3xf32>
    return %5, %3 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
