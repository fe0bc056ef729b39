// What several benchmarks train.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "autodiff/layers.h"

namespace mulgrad::bench {

// L4 d128 h4 T64 B12 V65.
struct TransformerSizes {
  std::int64_t layers = 4, width = 128, heads = 4, context = 64, batch = 12, vocabulary = 65;
};

// Characters [batch, context] to scores [batch, context, vocabulary].
inline Sequential char_transformer(const TransformerSizes& sizes) {
  std::vector<std::shared_ptr<const Layer>> layers{
      std::make_shared<const Embedding>(sizes.vocabulary, sizes.width),
      std::make_shared<const PositionEmbedding>(sizes.context, sizes.width)};
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    layers.push_back(std::make_shared<const Sequential>(
        transformer_block(sizes.width, sizes.heads, AttentionMask::causal)));
  }
  layers.push_back(std::make_shared<const LayerNorm>(sizes.width));
  layers.push_back(std::make_shared<const Linear>(sizes.width, sizes.vocabulary));
  return Sequential(std::move(layers));
}

}  // namespace mulgrad::bench
