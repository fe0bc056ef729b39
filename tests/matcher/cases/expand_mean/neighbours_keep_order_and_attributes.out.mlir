module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}, %arg1: tensor<5x3xf64> {mulgrad.name = "y"}) -> (tensor<1x1xf64> {mulgrad.name = "m"}, tensor<15xf64> {mulgrad.name = "r"}, tensor<3xf64> {mulgrad.name = "s"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x3xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<3x5xf64>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<5x1xf64>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<3x5xf64>, tensor<5x1xf64>) -> tensor<3x1xf64>
    %4 = stablehlo.constant dense<1.0e+00> : tensor<1x3xf64>
    %5 = stablehlo.dot_general %4, %3, contracting_dims = [1] x [0] : (tensor<1x3xf64>, tensor<3x1xf64>) -> tensor<1x1xf64>
    %6 = stablehlo.multiply %5, 6.666666666666667e-02 : tensor<1x1xf64>
    %7 = stablehlo.reshape %1 : (tensor<3x5xf64>) -> tensor<15xf64>
    %8 = stablehlo.multiply %6, 2.0e+00 : tensor<1x1xf64>
    %9 = stablehlo.reduce(%1) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf64>) -> tensor<3xf64>
    return %8, %7, %9 : tensor<1x1xf64>, tensor<15xf64>, tensor<3xf64>
  }
}
