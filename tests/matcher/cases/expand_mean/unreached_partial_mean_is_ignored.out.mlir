module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<3x5xf64>) -> tensor<5xf64>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf64>
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : (tensor<3x5xf64>, tensor<5x1xf64>) -> tensor<3x1xf64>
    %3 = stablehlo.constant dense<1.0e+00> : tensor<1x3xf64>
    %4 = stablehlo.dot_general %3, %2, contracting_dims = [1] x [0] : (tensor<1x3xf64>, tensor<3x1xf64>) -> tensor<1x1xf64>
    %5 = stablehlo.multiply %4, 6.666666666666667e-02 : tensor<1x1xf64>
    %6 = stablehlo.reshape %5 : (tensor<1x1xf64>) -> tensor<f64>
    return %6 : tensor<f64>
  }
}
