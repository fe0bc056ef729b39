// Two clauses and two categories; the error takes the first one's.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x5xf64> {mulgrad.name = "x"}, %arg1: tensor<15xf32> {mulgrad.name = "y"}) -> (tensor<f64> {mulgrad.name = "a"}, tensor<f32> {mulgrad.name = "b"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<[B]x5xf64>) -> tensor<f64>
    %1 = mulgrad.mean %arg1 across dimensions = [0] : (tensor<15xf32>) -> tensor<f32>
    return %0, %1 : tensor<f64>, tensor<f32>
  }
}
