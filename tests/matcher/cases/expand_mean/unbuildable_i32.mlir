module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xi32> {mulgrad.name = "x"}) -> (tensor<i32> {mulgrad.name = "m"}) {
    %0 = mulgrad.mean %arg0 across dimensions = [0, 1] : (tensor<3x5xi32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
