module @main attributes {mulgrad.form = "native"} {
  func.func @main(%g: tensor<1x1xf64> {mulgrad.seed = "loss"}, %row: tensor<1x5xf64> {mulgrad.capture = "c0"}, %s: tensor<f64> {mulgrad.capture = "c1"}) -> (tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>) {
    %dead = stablehlo.negate %s : tensor<f64>
    %b0 = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %q0 = stablehlo.divide %b0, 15.0 : tensor<3x5xf64>
    %b1 = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %q1 = stablehlo.divide %b1, 16.0 : tensor<3x5xf64>
    %b2 = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x5xf64>) -> tensor<3x5xf64>
    %q2 = stablehlo.divide %b2, 15.0 : tensor<3x5xf64>
    %b3 = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %q3 = stablehlo.divide 15.0, %b3 : tensor<3x5xf64>
    %b4 = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %q4 = stablehlo.divide %b4, 15.0 : tensor<3x5xf64>
    %p4 = stablehlo.add %q4, %b4 : tensor<3x5xf64>
    %b5 = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %q5 = stablehlo.multiply %b5, 2.0 : tensor<3x5xf64>
    %q6 = stablehlo.divide %q5, 15.0 : tensor<3x5xf64>
    return %q0, %q1, %q2, %q3, %p4, %q5, %q6 : tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>
  }
}
