module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3xi32> {mulgrad.name = "x"}) -> (tensor<i32> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<3xi32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
// -----
unchanged
%0 reduce: the target matmul_only does not have this op; its rule emits stablehlo.reshape: found an operand of dtype i32, expected one of f32, f64
