// What a step costs when it is written by hand for one network: products by BLAS, one loop for
// everything between two products, buffers that live as long as the network. step_bench measures
// ours beside it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/models.h"
#include "core/tensor.h"

namespace mulgrad::bench {

enum class Rule : std::uint8_t { sgd, adamw };

// Both sides use these: so small that thousands of steps on one batch keep all numbers ordinary.
inline constexpr double kSgdRate = 1e-3;
inline constexpr double kAdamRate = 1e-5;

// Linear layers with ReLU between them, softmax cross-entropy, all of them f32.
class HandWritten {
 public:
  // widths: inputs, hidden layers, classes. `parameters`: weight [in,out], bias [1,out] per layer.
  HandWritten(std::span<const std::int64_t> widths, std::span<const Tensor> parameters, Rule rule);

  // One step on inputs [rows, widths[0]] and labels [rows]; returns the loss before the update.
  float step(const Tensor& inputs, const Tensor& labels);

 private:
  struct Weights {
    std::vector<float> value, gradient, mean, square;
  };
  struct Layer {
    std::int64_t in, out;
    Weights weight, bias;
    std::vector<float> result;     // of the layer, after its ReLU
    std::vector<float> cotangent;  // of the layer before its ReLU
  };

  void forward(const float* inputs, std::int64_t rows);
  float loss_and_cotangent(std::span<const std::int32_t> labels);
  void backward(const float* inputs, std::int64_t rows);
  void update(Weights& weights) const;

  std::vector<Layer> layers_;
  Rule rule_;
  std::int64_t count_ = 0;
};

// The products alone of a character transformer's step, forward and backward, without anything
// between them: per block one product for queries, keys and values, one for each head's scores and
// mixture, one to join the heads, two around the GELU; and the head. The embedding is a lookup.
class TransformerProducts {
 public:
  explicit TransformerProducts(const TransformerSizes& sizes);
  void step();

 private:
  struct Block {
    std::vector<float> joint, join, up, down;          // weights
    std::vector<float> x, qkv, scores, mixed, hidden;  // what products read and write
  };
  // y[rows,out] = x[rows,in] weight, and backward from the cotangent of y.
  void linear(const std::vector<float>& x, const std::vector<float>& weight, std::int64_t in,
              std::int64_t out, std::vector<float>& y) const;
  void linear_backward(const std::vector<float>& x, const std::vector<float>& weight,
                       std::int64_t in, std::int64_t out, const std::vector<float>& ct);
  void attention(Block& block) const;
  void attention_backward(const Block& block);

  TransformerSizes sizes_;
  std::int64_t rows_;
  std::vector<Block> blocks_;
  std::vector<float> head_, x_, logits_;
  std::vector<float> ct_x_, ct_weight_, ct_qkv_, ct_scores_;  // shared scratch
};

// The threads of BLAS itself, in products called from here.
void use_blas_threads(int threads);

}  // namespace mulgrad::bench
