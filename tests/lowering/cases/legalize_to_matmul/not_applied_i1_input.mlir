module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<4xi1> {mulgrad.name = "p"}, %arg1: tensor<4xf32> {mulgrad.name = "x"}) -> (tensor<4xf32> {mulgrad.name = "y"}) {
    %0 = stablehlo.select %arg0, %arg1, 0.0e+00 : tensor<4xi1>, tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
unchanged
%0 select: found an input or output of the program of dtype i1, expected one of i8, i16, i32, i64, u8, u16, u32, u64, f32, f64; there is no rule for it
