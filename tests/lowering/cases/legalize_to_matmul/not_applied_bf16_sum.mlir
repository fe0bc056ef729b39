module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3xbf16> {mulgrad.name = "x"}) -> (tensor<bf16> {mulgrad.name = "y"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0] : (tensor<3xbf16>) -> tensor<bf16>
    return %0 : tensor<bf16>
  }
}
// -----
unchanged
%0 reduce: the target matmul_only does not have this op; its rule emits stablehlo.reshape: found an input or output of the program of dtype bf16, expected one of i8, i16, i32, i64, u8, u16, u32, u64, f32, f64
