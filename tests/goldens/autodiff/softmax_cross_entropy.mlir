module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x10xf32> {mulgrad.name = "a"}, %arg1: tensor<[B]xi32> {mulgrad.name = "b"}) -> (tensor<f32> {mulgrad.name = "loss"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.maximum across dimensions = [1] : (tensor<[B]x10xf32>) -> tensor<[B]xf32>
    %1 = stablehlo.reshape %0 : (tensor<[B]xf32>) -> tensor<[B]x1xf32>
    %2 = mulgrad.stop_gradient %1 : tensor<[B]x1xf32>
    %3 = stablehlo.subtract %arg0, %2 : (tensor<[B]x10xf32>, tensor<[B]x1xf32>) -> tensor<[B]x10xf32>
    %4 = stablehlo.exponential %3 : tensor<[B]x10xf32>
    %5 = stablehlo.reduce(%4) applies stablehlo.add across dimensions = [1] : (tensor<[B]x10xf32>) -> tensor<[B]xf32>
    %6 = stablehlo.reshape %5 : (tensor<[B]xf32>) -> tensor<[B]x1xf32>
    %7 = stablehlo.log %6 : tensor<[B]x1xf32>
    %8 = stablehlo.convert %arg1 : (tensor<[B]xi32>) -> tensor<[B]xf32>
    %9 = stablehlo.reshape %8 : (tensor<[B]xf32>) -> tensor<[B]x1xf32>
    %10 = stablehlo.iota dim = 1 : tensor<1x10xf32>
    %11 = stablehlo.compare EQ, %9, %10, FLOAT : (tensor<[B]x1xf32>, tensor<1x10xf32>) -> tensor<[B]x10xi1>
    %12 = stablehlo.select %11, %3, 0.0e+00 : tensor<[B]x10xi1>, tensor<[B]x10xf32>
    %13 = stablehlo.reduce(%12) applies stablehlo.add across dimensions = [1] : (tensor<[B]x10xf32>) -> tensor<[B]xf32>
    %14 = stablehlo.reshape %13 : (tensor<[B]xf32>) -> tensor<[B]x1xf32>
    %15 = stablehlo.subtract %7, %14 : tensor<[B]x1xf32>
    %16 = mulgrad.mean %15 across dimensions = [0, 1] : (tensor<[B]x1xf32>) -> tensor<f32>
    return %16 : tensor<f32>
  }
}
