// A partial reduction, not a symbolic one.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x5xf64> {mulgrad.name = "x"}) -> (tensor<[B]xf64> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [1] : (tensor<[B]x5xf64>) -> tensor<[B]xf64>
    return %0 : tensor<[B]xf64>
  }
}
// -----
error
unsupported_reduction: %0 mulgrad.mean: expand_mean does not apply: %0 mulgrad.mean: clause 3: unsupported_reduction: found a partial reduction over axes [1], expected axes [0, 1]
