module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<65x2x3xf32> {mulgrad.name = "a"}, %arg1: tensor<65x3x4xf32> {mulgrad.name = "b"}) -> (tensor<65x2x4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<65x2x3xf32>, tensor<65x3x4xf32>) -> tensor<65x2x4xf32>
    return %0 : tensor<65x2x4xf32>
  }
}
// -----
unchanged
%0 dot_general: found batching dims [0] x [0], expected none; a masked block product would do 65 times the work, the limit is 64 times
