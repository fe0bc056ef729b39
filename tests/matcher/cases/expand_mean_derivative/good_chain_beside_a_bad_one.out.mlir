module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}, tensor<3x5xf64> {mulgrad.name = "grad.y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.divide %0, 1.6e+01 : tensor<3x5xf64>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf64>
    %3 = stablehlo.dot_general %2, %arg0, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x1xf64>) -> tensor<3x1xf64>
    %4 = stablehlo.constant dense<1.0e+00> : tensor<1x5xf64>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    %6 = stablehlo.multiply %5, 6.666666666666667e-02 : tensor<3x5xf64>
    return %1, %6 : tensor<3x5xf64>, tensor<3x5xf64>
  }
}
