module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "loss"}) -> (tensor<9223372036854775807x1xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<9223372036854775807x1xf64>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<9223372036854775807x1xf64>, tensor<1x1xf64>) -> tensor<9223372036854775807x1xf64>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x1xf64>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<9223372036854775807x1xf64>, tensor<1x1xf64>) -> tensor<9223372036854775807x1xf64>
    %4 = stablehlo.multiply %3, 1.0842021724855044e-19 : tensor<9223372036854775807x1xf64>
    return %4 : tensor<9223372036854775807x1xf64>
  }
}
