module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<5x3xf32> {mulgrad.name = "x"}) -> (tensor<f32> {mulgrad.name = "m"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<5x3xf32>, tensor<3x1xf32>) -> tensor<5x1xf32>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x5xf32>
    %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<1x5xf32>, tensor<5x1xf32>) -> tensor<1x1xf32>
    %4 = stablehlo.multiply %3, 6.666667e-02 : tensor<1x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x1xf32>) -> tensor<f32>
    return %5 : tensor<f32>
  }
}
