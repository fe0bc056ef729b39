module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}, %arg1: tensor<5x3xf64> {mulgrad.name = "y"}) -> (tensor<1x1xf64> {mulgrad.name = "m"}, tensor<15xf64> {mulgrad.name = "r"}, tensor<3xf64> {mulgrad.name = "s"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x3xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<3x5xf64>
    %2 = mulgrad.mean %1 across dimensions = [0, 1] {keepdims = true} : (tensor<3x5xf64>) -> tensor<1x1xf64>
    %3 = stablehlo.reshape %1 : (tensor<3x5xf64>) -> tensor<15xf64>
    %4 = stablehlo.multiply %2, 2.0e+00 : tensor<1x1xf64>
    %5 = stablehlo.reduce(%1) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf64>) -> tensor<3xf64>
    return %4, %3, %5 : tensor<1x1xf64>, tensor<15xf64>, tensor<3xf64>
  }
}
