module @main attributes {mulgrad.form = "native"} {
  func.func @main(%x: tensor<3x5xf32>, %h: tensor<3x5xbf16>) -> (tensor<f32>, tensor<3xf32>, tensor<bf16>) {
    %all = mulgrad.mean %x across dimensions = [0, 1] : (tensor<3x5xf32>) -> tensor<f32>
    %rows = mulgrad.mean %x across dimensions = [1] : (tensor<3x5xf32>) -> tensor<3xf32>
    %half = mulgrad.mean %h across dimensions = [0, 1] : (tensor<3x5xbf16>) -> tensor<bf16>
    return %all, %rows, %half : tensor<f32>, tensor<3xf32>, tensor<bf16>
  }
}
