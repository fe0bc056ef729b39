module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "a"}, %arg1: tensor<1x1xf32> {mulgrad.seed = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}, tensor<2x2xf32> {mulgrad.name = "grad.y"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<2x1xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x2xf32>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<2x1xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
    %4 = stablehlo.multiply %3, 2.5e-01 : tensor<2x2xf32>
    %5 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf64>
    %6 = stablehlo.dot_general %5, %arg0, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x1xf64>) -> tensor<3x1xf64>
    %7 = stablehlo.constant dense<1.0e+00> : tensor<1x5xf64>
    %8 = stablehlo.dot_general %6, %7, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    %9 = stablehlo.multiply %8, 6.666666666666667e-02 : tensor<3x5xf64>
    return %9, %4 : tensor<3x5xf64>, tensor<2x2xf32>
  }
}
