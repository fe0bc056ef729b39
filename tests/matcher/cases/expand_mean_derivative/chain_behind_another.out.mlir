module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf64>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf64>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
    %4 = stablehlo.multiply %3, 1.0e+00 : tensor<1x1xf64>
    %5 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf64>
    %6 = stablehlo.dot_general %5, %4, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x1xf64>) -> tensor<3x1xf64>
    %7 = stablehlo.constant dense<1.0e+00> : tensor<1x5xf64>
    %8 = stablehlo.dot_general %6, %7, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    %9 = stablehlo.multiply %8, 6.666666666666667e-02 : tensor<3x5xf64>
    return %9 : tensor<3x5xf64>
  }
}
