module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<4x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xi1>) -> tensor<4x2xi1>
    %2 = stablehlo.convert %1 : (tensor<4x2xi1>) -> tensor<4x2xf32>
    return %2 : tensor<4x2xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xf32> {mulgrad.name = "a"}) -> (tensor<4x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.convert %0 : (tensor<4xi1>) -> tensor<4xf32>
    %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %3 = stablehlo.constant dense<1.0e+00> : tensor<1x2xf32>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<4x1xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
    %5 = stablehlo.compare NE, %4, 0.0e+00, FLOAT : (tensor<4x2xf32>) -> tensor<4x2xi1>
    %6 = stablehlo.convert %5 : (tensor<4x2xi1>) -> tensor<4x2xf32>
    return %6 : tensor<4x2xf32>
  }
}
