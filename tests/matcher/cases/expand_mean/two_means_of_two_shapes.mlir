module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}, %arg1: tensor<4x2xf32> {mulgrad.name = "y"}) -> (tensor<f64> {mulgrad.name = "a"}, tensor<1x1xf32> {mulgrad.name = "b"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    %1 = mulgrad.mean %arg1 across dimensions = [0, 1] {keepdims = true} : (tensor<4x2xf32>) -> tensor<1x1xf32>
    return %0, %1 : tensor<f64>, tensor<1x1xf32>
  }
}
