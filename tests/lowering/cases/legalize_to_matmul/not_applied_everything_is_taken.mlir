module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x4xf32> {mulgrad.name = "a"}, %arg1: tensor<4x2xf32> {mulgrad.name = "b"}, %arg2: tensor<f32> {mulgrad.name = "c"}) -> (tensor<3x2xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.add %0, %arg2 : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
    %2 = stablehlo.compare GT, %1, 0.0e+00, FLOAT : (tensor<3x2xf32>) -> tensor<3x2xi1>
    %3 = stablehlo.select %2, %1, 0.0e+00 : tensor<3x2xi1>, tensor<3x2xf32>
    return %3 : tensor<3x2xf32>
  }
}
// -----
unchanged
