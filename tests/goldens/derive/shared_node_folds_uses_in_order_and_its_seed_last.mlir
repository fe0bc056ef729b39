module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "p"}, tensor<3x5xf64> {mulgrad.name = "y"}) {
    %0 = stablehlo.exponential %arg0 : tensor<3x5xf64>
    %1 = stablehlo.multiply %0, 2.0e+00 : tensor<3x5xf64>
    %2 = stablehlo.sine %0 : tensor<3x5xf64>
    %3 = stablehlo.add %1, %2 : tensor<3x5xf64>
    return %3, %0 : tensor<3x5xf64>, tensor<3x5xf64>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<3x5xf64> {mulgrad.name = "p"}, tensor<3x5xf64> {mulgrad.name = "y"}, tensor<3x5xf64> {mulgrad.capture = "c0"}) {
    %0 = stablehlo.exponential %arg0 : tensor<3x5xf64>
    %1 = stablehlo.multiply %0, 2.0e+00 : tensor<3x5xf64>
    %2 = stablehlo.sine %0 : tensor<3x5xf64>
    %3 = stablehlo.add %1, %2 : tensor<3x5xf64>
    return %3, %0, %0 : tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.seed = "p"}, %arg1: tensor<3x5xf64> {mulgrad.seed = "y"}, %arg2: tensor<3x5xf64> {mulgrad.capture = "c0"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}) {
    %0 = stablehlo.cosine %arg2 : tensor<3x5xf64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<3x5xf64>
    %2 = stablehlo.multiply %arg0, 2.0e+00 : tensor<3x5xf64>
    %3 = stablehlo.add %2, %1 : tensor<3x5xf64>
    %4 = stablehlo.add %3, %arg1 : tensor<3x5xf64>
    %5 = stablehlo.multiply %4, %arg2 : tensor<3x5xf64>
    return %5 : tensor<3x5xf64>
  }
}
