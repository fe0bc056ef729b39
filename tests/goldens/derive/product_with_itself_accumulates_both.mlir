module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x3xf64> {mulgrad.name = "x"}) -> (tensor<3x3xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    return %0 : tensor<3x3xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x3xf64> {mulgrad.name = "x"}) -> (tensor<3x3xf64> {mulgrad.name = "y"}, tensor<3x3xf64> {mulgrad.capture = "c0"}) {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    return %0, %arg0 : tensor<3x3xf64>, tensor<3x3xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x3xf64> {mulgrad.seed = "y"}, %arg1: tensor<3x3xf64> {mulgrad.capture = "c0"}) -> (tensor<3x3xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x3xf64>) -> tensor<3x3xf64>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %2 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x3xf64>) -> tensor<3x3xf64>
    %3 = stablehlo.dot_general %2, %arg0, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %4 = stablehlo.add %1, %3 : tensor<3x3xf64>
    return %4 : tensor<3x3xf64>
  }
}
