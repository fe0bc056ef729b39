module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xi32> {mulgrad.name = "labels"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.compare EQ, %arg0, 3, SIGNED : (tensor<4xi32>) -> tensor<4xi1>
    %1 = stablehlo.convert %0 : (tensor<4xi1>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
// -----
unchanged
%0 compare: found an operand of dtype i32, expected one of f32, f64; there is no rule for it
