module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<f32> {mulgrad.seed = "loss"}) -> (tensor<5x3xf32> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1x1xf32>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf32>
    %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] : (tensor<5x1xf32>, tensor<1x1xf32>) -> tensor<5x1xf32>
    %3 = stablehlo.constant dense<1.0e+00> : tensor<1x3xf32>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<5x1xf32>, tensor<1x3xf32>) -> tensor<5x3xf32>
    %5 = stablehlo.multiply %4, 6.666667e-02 : tensor<5x3xf32>
    return %5 : tensor<5x3xf32>
  }
}
