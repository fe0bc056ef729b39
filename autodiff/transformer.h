// The block that transformers repeat.
#pragma once

#include <cstdint>

#include "autodiff/attention.h"
#include "autodiff/layer.h"

namespace mulgrad {

// x[B,T,width] -> [B,T,width], normalised before each part: Xiong et al., "On layer normalization
// in the transformer architecture" (ICML 2020), with GELU and four times the width in the middle.
//   x = x + Dropout(MultiHeadAttention(LayerNorm(x)))
//   x = x + Dropout(Linear(GELU(Linear(LayerNorm(x)))))
// `dropout` also falls on the attention weights. Throws as the layers.
Sequential transformer_block(std::int64_t width, std::int64_t heads, AttentionMask mask,
                             double dropout = 0, DType dtype = DType::f32);

}  // namespace mulgrad
