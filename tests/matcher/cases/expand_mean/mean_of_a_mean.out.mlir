module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf64>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x5xf64>, tensor<5x1xf64>) -> tensor<3x1xf64>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x3xf64>
    %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<1x3xf64>, tensor<3x1xf64>) -> tensor<1x1xf64>
    %4 = stablehlo.multiply %3, 6.666666666666667e-02 : tensor<1x1xf64>
    %5 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf64>
    %6 = stablehlo.dot_general %4, %5, contracting_dims = [1] x [0] : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
    %7 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf64>
    %8 = stablehlo.dot_general %7, %6, contracting_dims = [1] x [0] : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
    %9 = stablehlo.multiply %8, 1.0e+00 : tensor<1x1xf64>
    %10 = stablehlo.reshape %9 : (tensor<1x1xf64>) -> tensor<f64>
    return %10 : tensor<f64>
  }
}
