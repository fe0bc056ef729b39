module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}, %arg1: tensor<3x1xf64> {mulgrad.name = "y"}) -> (tensor<3x5xf64> {mulgrad.name = "z"}) {
    %0 = stablehlo.exponential %arg1 : tensor<3x1xf64>
    %1 = stablehlo.compare GT, %0, 1.0e+00, FLOAT : (tensor<3x1xf64>) -> tensor<3x1xi1>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %3 = stablehlo.is_finite %arg0 : (tensor<3x5xf64>) -> tensor<3x5xi1>
    %4 = stablehlo.and %3, %2 : tensor<3x5xi1>
    %5 = stablehlo.multiply %arg0, %0 : (tensor<3x5xf64>, tensor<3x1xf64>) -> tensor<3x5xf64>
    %6 = stablehlo.select %4, %5, %arg0 : tensor<3x5xi1>, tensor<3x5xf64>
    return %6 : tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}, %arg1: tensor<3x1xf64> {mulgrad.name = "y"}) -> (tensor<3x5xf64> {mulgrad.name = "z"}, tensor<3x5xf64> {mulgrad.capture = "c0"}, tensor<3x1xf64> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.exponential %arg1 : tensor<3x1xf64>
    %1 = stablehlo.compare GT, %0, 1.0e+00, FLOAT : (tensor<3x1xf64>) -> tensor<3x1xi1>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %3 = stablehlo.is_finite %arg0 : (tensor<3x5xf64>) -> tensor<3x5xi1>
    %4 = stablehlo.and %3, %2 : tensor<3x5xi1>
    %5 = stablehlo.multiply %arg0, %0 : (tensor<3x5xf64>, tensor<3x1xf64>) -> tensor<3x5xf64>
    %6 = stablehlo.select %4, %5, %arg0 : tensor<3x5xi1>, tensor<3x5xf64>
    return %6, %arg0, %0 : tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x1xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "z"}, %arg1: tensor<3x5xf64> {mulgrad.capture = "c0"}, %arg2: tensor<3x1xf64> {mulgrad.capture = "c1"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}, tensor<3x1xf64> {mulgrad.name = "grad.y"}) {
    %0 = stablehlo.is_finite %arg1 : (tensor<3x5xf64>) -> tensor<3x5xi1>
    %1 = stablehlo.compare GT, %arg2, 1.0e+00, FLOAT : (tensor<3x1xf64>) -> tensor<3x1xi1>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %3 = stablehlo.and %0, %2 : tensor<3x5xi1>
    %4 = stablehlo.select %3, %arg0, 0.0e+00 : tensor<3x5xi1>, tensor<3x5xf64>
    %5 = stablehlo.select %3, 0.0e+00, %arg0 : tensor<3x5xi1>, tensor<3x5xf64>
    %6 = stablehlo.multiply %4, %arg2 : (tensor<3x5xf64>, tensor<3x1xf64>) -> tensor<3x5xf64>
    %7 = stablehlo.multiply %4, %arg1 : tensor<3x5xf64>
    %8 = stablehlo.reduce(%7) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf64>) -> tensor<3xf64>
    %9 = stablehlo.reshape %8 : (tensor<3xf64>) -> tensor<3x1xf64>
    %10 = stablehlo.multiply %9, %arg2 : tensor<3x1xf64>
    %11 = stablehlo.add %6, %5 : tensor<3x5xf64>
    return %11, %10 : tensor<3x5xf64>, tensor<3x1xf64>
  }
}
