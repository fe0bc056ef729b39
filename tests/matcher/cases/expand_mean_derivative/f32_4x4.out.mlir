module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf32> {mulgrad.seed = "loss"}) -> (tensor<4x4xf32> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<4x1xf32>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x4xf32>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.multiply %3, 6.25e-02 : tensor<4x4xf32>
    return %4 : tensor<4x4xf32>
  }
}
