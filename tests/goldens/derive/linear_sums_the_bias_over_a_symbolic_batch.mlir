module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x64xf32> {mulgrad.name = "x"}, %arg1: tensor<64x10xf32> {mulgrad.name = "w"}, %arg2: tensor<10xf32> {mulgrad.name = "b"}) -> (tensor<[B]x10xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<10xf32>) -> tensor<[B]x10xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<[B]x64xf32>, tensor<64x10xf32>) -> tensor<[B]x10xf32>
    %2 = stablehlo.add %1, %0 : tensor<[B]x10xf32>
    return %2 : tensor<[B]x10xf32>
  }
}
// -----
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x64xf32> {mulgrad.name = "x"}, %arg1: tensor<64x10xf32> {mulgrad.name = "w"}, %arg2: tensor<10xf32> {mulgrad.name = "b"}) -> (tensor<[B]x10xf32> {mulgrad.name = "y"}, tensor<64x10xf32> {mulgrad.capture = "c0"}, tensor<[B]x64xf32> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<10xf32>) -> tensor<[B]x10xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<[B]x64xf32>, tensor<64x10xf32>) -> tensor<[B]x10xf32>
    %2 = stablehlo.add %1, %0 : tensor<[B]x10xf32>
    return %2, %arg1, %arg0 : tensor<[B]x10xf32>, tensor<64x10xf32>, tensor<[B]x64xf32>
  }
}
// -----
module @main.grad attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x10xf32> {mulgrad.seed = "y"}, %arg1: tensor<64x10xf32> {mulgrad.capture = "c0"}, %arg2: tensor<[B]x64xf32> {mulgrad.capture = "c1"}) -> (tensor<[B]x64xf32> {mulgrad.name = "grad.x"}, tensor<64x10xf32> {mulgrad.name = "grad.w"}, tensor<10xf32> {mulgrad.name = "grad.b"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<64x10xf32>) -> tensor<10x64xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<[B]x10xf32>, tensor<10x64xf32>) -> tensor<[B]x64xf32>
    %2 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<[B]x64xf32>) -> tensor<64x[B]xf32>
    %3 = stablehlo.dot_general %2, %arg0, contracting_dims = [1] x [0] : (tensor<64x[B]xf32>, tensor<[B]x10xf32>) -> tensor<64x10xf32>
    %4 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<[B]x10xf32>) -> tensor<10xf32>
    return %1, %3, %4 : tensor<[B]x64xf32>, tensor<64x10xf32>, tensor<10xf32>
  }
}
