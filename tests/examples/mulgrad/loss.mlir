// The names of values are the author's own; mulgrad prints its.
module @main attributes {mulgrad.form = "native"} {
  func.func @main(%x: tensor<3x5xf64> {mulgrad.name = "x"}, %n: tensor<3x5xi32>, %y: tensor<3x5xf64>) -> (tensor<3x5xi32>, tensor<f64> {mulgrad.name = "loss"}) {
    %d = stablehlo.subtract %x, %y : tensor<3x5xf64>
    %e = stablehlo.multiply %d, %d : tensor<3x5xf64>
    %m = mulgrad.mean %e across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    return %n, %m : tensor<3x5xi32>, tensor<f64>
  }
}
