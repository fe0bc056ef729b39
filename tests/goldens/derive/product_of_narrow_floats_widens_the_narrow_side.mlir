module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xbf16> {mulgrad.name = "a"}, %arg1: tensor<3x4xbf16> {mulgrad.name = "b"}) -> (tensor<2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xbf16> {mulgrad.name = "a"}, %arg1: tensor<3x4xbf16> {mulgrad.name = "b"}) -> (tensor<2x4xf32> {mulgrad.name = "y"}, tensor<3x4xbf16> {mulgrad.capture = "c0"}, tensor<2x3xbf16> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
    return %0, %arg1, %arg0 : tensor<2x4xf32>, tensor<3x4xbf16>, tensor<2x3xbf16>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x4xf32> {mulgrad.seed = "y"}, %arg1: tensor<3x4xbf16> {mulgrad.capture = "c0"}, %arg2: tensor<2x3xbf16> {mulgrad.capture = "c1"}) -> (tensor<2x3xbf16> {mulgrad.name = "grad.a"}, tensor<3x4xbf16> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x4xbf16>) -> tensor<4x3xbf16>
    %1 = stablehlo.convert %0 : (tensor<4x3xbf16>) -> tensor<4x3xf32>
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xbf16>
    %3 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<2x3xbf16>) -> tensor<3x2xbf16>
    %4 = stablehlo.convert %3 : (tensor<3x2xbf16>) -> tensor<3x2xf32>
    %5 = stablehlo.dot_general %4, %arg0, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xbf16>
    return %2, %5 : tensor<2x3xbf16>, tensor<3x4xbf16>
  }
}
