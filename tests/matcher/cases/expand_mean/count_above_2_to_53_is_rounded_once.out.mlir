module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x3002399751580331xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = stablehlo.constant dense<1.0e+00> : tensor<3002399751580331x1xf64>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x3002399751580331xf64>, tensor<3002399751580331x1xf64>) -> tensor<3x1xf64>
    %2 = stablehlo.constant dense<1.0e+00> : tensor<1x3xf64>
    %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<1x3xf64>, tensor<3x1xf64>) -> tensor<1x1xf64>
    %4 = stablehlo.multiply %3, 1.1102230246251564e-16 : tensor<1x1xf64>
    %5 = stablehlo.reshape %4 : (tensor<1x1xf64>) -> tensor<f64>
    return %5 : tensor<f64>
  }
}
