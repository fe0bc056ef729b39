// The scores of an attention with 2 sequences of 3 heads.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3x4x5xf32> {mulgrad.name = "queries"}, %arg1: tensor<2x3x4x5xf32> {mulgrad.name = "keys"}) -> (tensor<2x3x4x4xf32> {mulgrad.name = "scores"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x4xf32>
    return %0 : tensor<2x3x4x4xf32>
  }
}
