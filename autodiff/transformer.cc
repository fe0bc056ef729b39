#include "autodiff/transformer.h"

#include "autodiff/activations.h"
#include "autodiff/dense.h"
#include "autodiff/dropout.h"
#include "autodiff/normalization.h"

namespace mulgrad {

Sequential transformer_block(std::int64_t width, std::int64_t heads, AttentionMask mask,
                             double dropout, DType dtype) {
  const LayerNorm normalize(width, 1e-5, dtype);
  const std::int64_t middle = 4 * width;
  return Sequential{
      Residual(Sequential{normalize, MultiHeadAttention(width, heads, mask, dropout, dtype),
                          Dropout(dropout)}),
      Residual(Sequential{normalize, Linear(width, middle, dtype), GELU(),
                          Linear(middle, width, dtype), Dropout(dropout)})};
}

}  // namespace mulgrad
