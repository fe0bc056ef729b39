module @update attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<2x3xf32> {mulgrad.name = "parameter"}, %arg1: tensor<2x3xf32> {mulgrad.name = "gradient"}, %arg2: tensor<2x3xf32> {mulgrad.name = "m"}, %arg3: tensor<2x3xf32> {mulgrad.name = "v"}, %arg4: tensor<f32> {mulgrad.name = "rate"}, %arg5: tensor<f32> {mulgrad.name = "correction1"}, %arg6: tensor<f32> {mulgrad.name = "correction2"}) -> (tensor<2x3xf32> {mulgrad.name = "parameter"}, tensor<2x3xf32> {mulgrad.name = "m"}, tensor<2x3xf32> {mulgrad.name = "v"}) {
    %0 = stablehlo.multiply 1.0e-02, %arg4 : tensor<f32>
    %1 = stablehlo.subtract 1.0e+00, %0 : tensor<f32>
    %2 = stablehlo.multiply %arg0, %1 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.multiply 9.0e-01, %arg2 : tensor<2x3xf32>
    %4 = stablehlo.multiply 1.0e-01, %arg1 : tensor<2x3xf32>
    %5 = stablehlo.add %3, %4 : tensor<2x3xf32>
    %6 = stablehlo.multiply 9.99e-01, %arg3 : tensor<2x3xf32>
    %7 = stablehlo.multiply %arg1, %arg1 : tensor<2x3xf32>
    %8 = stablehlo.multiply 1.0e-03, %7 : tensor<2x3xf32>
    %9 = stablehlo.add %6, %8 : tensor<2x3xf32>
    %10 = stablehlo.divide %5, %arg5 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %11 = stablehlo.divide %9, %arg6 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %12 = stablehlo.sqrt %11 : tensor<2x3xf32>
    %13 = stablehlo.add %12, 1.0e-08 : tensor<2x3xf32>
    %14 = stablehlo.multiply %arg4, %10 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %15 = stablehlo.divide %14, %13 : tensor<2x3xf32>
    %16 = stablehlo.subtract %2, %15 : tensor<2x3xf32>
    return %16, %5, %9 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}
