module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}, %arg1: tensor<1x1xf64> {mulgrad.capture = "c0"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<1x1xf64>
    %1 = stablehlo.constant dense<1.0e+00> : tensor<3x1xf64>
    %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x1xf64>) -> tensor<3x1xf64>
    %3 = stablehlo.constant dense<1.0e+00> : tensor<1x5xf64>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<3x1xf64>, tensor<1x5xf64>) -> tensor<3x5xf64>
    %5 = stablehlo.multiply %4, 6.666666666666667e-02 : tensor<3x5xf64>
    return %5 : tensor<3x5xf64>
  }
}
