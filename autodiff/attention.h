// Attention over sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/dense.h"
#include "autodiff/dropout.h"
#include "autodiff/layer.h"

namespace mulgrad {

// Which keys a query may look at by its place: all, or none behind it.
enum class AttentionMask : std::uint8_t { none, causal };

// Scaled dot-product attention in `heads` heads: Vaswani et al., "Attention is all you need"
// (NIPS 2017), section 3.2. x[B,T,width] -> [B,T,width]; queries, keys, values and the result are
// Linear(width, width) each: "query.weight", "query.bias", "key.weight" ... "output.bias". In
// training, `dropout` falls on the attention weights.
//
// LayerContext::padding takes the keys away where it is 0. A query that is left without any key
// gives 0 and takes no gradient: both are selected, never multiplied. Values of keys that are taken
// away are multiplied by 0, so they must be finite.
//
// Throws invalid_argument for a size below 1, heads that do not divide the width, and a rate that
// Dropout refuses; dtype_mismatch for a dtype other than float. forward() throws shape_mismatch or
// symbolic_shape_mismatch unless x is [B,T,width] and the padding, if any, [B,T].
class MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(std::int64_t width, std::int64_t heads, AttentionMask mask, double dropout = 0,
                     DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;
  std::vector<std::string> description() const override;

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::int64_t width_;
  std::int64_t heads_;
  AttentionMask mask_;
  Dropout dropout_;
  Linear projection_;
};

}  // namespace mulgrad
