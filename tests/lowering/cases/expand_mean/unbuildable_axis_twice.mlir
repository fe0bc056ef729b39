module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 0] : (tensor<3x5xf64>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
// -----
error
case:3:10: reduction_shape_mismatch: %0 mulgrad.mean: Mean C1: found axes [0, 0], expected unique axes of an operand of rank 2
