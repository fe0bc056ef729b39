// Their nodes are interleaved.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = "a"}, %arg1: tensor<1x1xf32> {mulgrad.seed = "b"}) -> (tensor<3x5xf64> {mulgrad.name = "grad.x"}, tensor<2x2xf32> {mulgrad.name = "grad.y"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<3x5xf64>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.divide %1, 4.0 : tensor<2x2xf32>
    %3 = stablehlo.divide %0, 15.0 : tensor<3x5xf64>
    return %3, %2 : tensor<3x5xf64>, tensor<2x2xf32>
  }
}
