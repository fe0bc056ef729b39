#include "bench/floor.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>

namespace mulgrad::bench {
namespace {

// result[m,n] = beta result + a b, where a is [m,k] and b [k,n] or, transposed, as they are stored.
void product(CBLAS_TRANSPOSE flip_a, CBLAS_TRANSPOSE flip_b, std::int64_t m, std::int64_t n,
             std::int64_t k, const float* a, const float* b, float beta, float* result) {
  cblas_sgemm(
      CblasRowMajor, flip_a, flip_b, static_cast<blasint>(m), static_cast<blasint>(n),
      static_cast<blasint>(k), 1.0F, a, static_cast<blasint>(flip_a == CblasNoTrans ? k : m), b,
      static_cast<blasint>(flip_b == CblasNoTrans ? n : k), beta, result, static_cast<blasint>(n));
}

}  // namespace

void use_blas_threads(int threads) { openblas_set_num_threads(threads); }

HandWritten::HandWritten(std::span<const std::int64_t> widths, std::span<const Tensor> parameters,
                         Rule rule)
    : rule_(rule) {
  const auto start = [rule](const Tensor& tensor) {
    const auto values = tensor.data<float>();
    const std::vector<float> zeros(values.size());
    Weights weights{{values.begin(), values.end()}, zeros, {}, {}};
    if (rule == Rule::adamw) weights.mean = weights.square = zeros;
    return weights;
  };
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    layers_.push_back(
        {widths[i], widths[i + 1], start(parameters[2 * i]), start(parameters[2 * i + 1]), {}, {}});
  }
}

float HandWritten::step(const Tensor& inputs, const Tensor& labels) {
  const float* x = inputs.data<float>().data();
  const std::int64_t rows = inputs.sizes()[0];
  ++count_;
  forward(x, rows);
  const float loss = loss_and_cotangent(labels.data<std::int32_t>());
  backward(x, rows);
  return loss;
}

void HandWritten::forward(const float* inputs, std::int64_t rows) {
  const float* x = inputs;
  for (Layer& layer : layers_) {
    layer.result.resize(static_cast<std::size_t>(rows * layer.out));
    float* y = layer.result.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(layer.bias.value.data(), layer.out, y + row * layer.out);
    }
    product(CblasNoTrans, CblasNoTrans, rows, layer.out, layer.in, x, layer.weight.value.data(), 1,
            y);
    if (&layer != &layers_.back()) {
      for (float& value : layer.result) value = value > 0 ? value : 0;
    }
    x = y;
  }
}

float HandWritten::loss_and_cotangent(std::span<const std::int32_t> labels) {
  Layer& last = layers_.back();
  const auto classes = static_cast<std::size_t>(last.out);
  const float share = 1.0F / static_cast<float>(labels.size());
  last.cotangent.resize(last.result.size());
  float loss = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const float* logits = last.result.data() + row * classes;
    float* out = last.cotangent.data() + row * classes;
    const float top = *std::max_element(logits, logits + classes);
    float sum = 0;
    for (std::size_t i = 0; i < classes; ++i) sum += out[i] = std::exp(logits[i] - top);
    const auto label = static_cast<std::size_t>(labels[row]);
    loss += (std::log(sum) - (logits[label] - top)) * share;
    for (std::size_t i = 0; i < classes; ++i) out[i] *= share / sum;
    out[label] -= share;
  }
  return loss;
}

void HandWritten::backward(const float* inputs, std::int64_t rows) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    const float* x = i == 0 ? inputs : layers_[i - 1].result.data();
    const float* ct = layer.cotangent.data();
    product(CblasTrans, CblasNoTrans, layer.in, layer.out, rows, x, ct, 0,
            layer.weight.gradient.data());
    std::fill(layer.bias.gradient.begin(), layer.bias.gradient.end(), 0.0F);
    float* sums = layer.bias.gradient.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < layer.out; ++j) sums[j] += ct[row * layer.out + j];
    }
    if (i > 0) {
      std::vector<float>& below = layers_[i - 1].cotangent;
      below.resize(layers_[i - 1].result.size());
      product(CblasNoTrans, CblasTrans, rows, layer.in, layer.out, ct, layer.weight.value.data(), 0,
              below.data());
      for (std::size_t j = 0; j < below.size(); ++j) below[j] = x[j] > 0 ? below[j] : 0;
    }
    update(layer.weight);
    update(layer.bias);
  }
}

void HandWritten::update(Weights& weights) const {
  float* p = weights.value.data();
  const float* g = weights.gradient.data();
  const std::size_t size = weights.value.size();
  if (rule_ == Rule::sgd) {
    const auto rate = static_cast<float>(kSgdRate);
    for (std::size_t i = 0; i < size; ++i) p[i] -= rate * g[i];
    return;
  }
  // The library's defaults: beta 0.9 and 0.999, epsilon 1e-8, weight decay 0.01.
  const auto count = static_cast<double>(count_);
  const auto keep = static_cast<float>(1 - kAdamRate * 0.01);
  const auto rate = static_cast<float>(kAdamRate / (1 - std::pow(0.9, count)));
  const auto scale = static_cast<float>(1 / (1 - std::pow(0.999, count)));
  float* m = weights.mean.data();
  float* v = weights.square.data();
  for (std::size_t i = 0; i < size; ++i) {
    m[i] = 0.9F * m[i] + 0.1F * g[i];
    v[i] = 0.999F * v[i] + 0.001F * g[i] * g[i];
    p[i] = keep * p[i] - rate * m[i] / (std::sqrt(v[i] * scale) + 1e-8F);
  }
}

TransformerProducts::TransformerProducts(const TransformerSizes& sizes)
    : sizes_(sizes), rows_(sizes.batch * sizes.context) {
  const auto filled = [](std::int64_t size) {
    return std::vector<float>(static_cast<std::size_t>(size), 0.01F);
  };
  const std::int64_t width = sizes.width;
  const std::int64_t scores = sizes.batch * sizes.heads * sizes.context * sizes.context;
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    blocks_.push_back({filled(width * 3 * width), filled(width * width), filled(width * 4 * width),
                       filled(4 * width * width), filled(rows_ * width), filled(rows_ * 3 * width),
                       filled(scores), filled(rows_ * width), filled(rows_ * 4 * width)});
  }
  head_ = filled(width * sizes.vocabulary);
  x_ = filled(rows_ * width);
  logits_ = filled(rows_ * sizes.vocabulary);
  ct_x_ = filled(rows_ * 4 * width);
  ct_weight_ = filled(4 * width * width);
  ct_qkv_ = filled(rows_ * 3 * width);
  ct_scores_ = filled(scores);
}

void TransformerProducts::linear(const std::vector<float>& x, const std::vector<float>& weight,
                                 std::int64_t in, std::int64_t out, std::vector<float>& y) const {
  product(CblasNoTrans, CblasNoTrans, rows_, out, in, x.data(), weight.data(), 0, y.data());
}

void TransformerProducts::linear_backward(const std::vector<float>& x,
                                          const std::vector<float>& weight, std::int64_t in,
                                          std::int64_t out, const std::vector<float>& ct) {
  product(CblasTrans, CblasNoTrans, in, out, rows_, x.data(), ct.data(), 0, ct_weight_.data());
  product(CblasNoTrans, CblasTrans, rows_, in, out, ct.data(), weight.data(), 0, ct_x_.data());
}

// The heads lie beside each other in the rows of queries, keys and values.
void TransformerProducts::attention(Block& block) const {
  const auto t = static_cast<blasint>(sizes_.context);
  const auto width = static_cast<blasint>(sizes_.width);
  const auto size = static_cast<blasint>(sizes_.width / sizes_.heads);
  for (std::int64_t i = 0; i < sizes_.batch * sizes_.heads; ++i) {
    const std::int64_t row = i / sizes_.heads * sizes_.context;
    const std::int64_t column = i % sizes_.heads * size;
    const float* q = block.qkv.data() + row * 3 * width + column;
    float* scores = block.scores.data() + i * t * t;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t, t, size, 1, q, 3 * width, q + width,
                3 * width, 0, scores, t);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t, size, t, 1, scores, t, q + 2 * width,
                3 * width, 0, block.mixed.data() + row * width + column, width);
  }
}

void TransformerProducts::attention_backward(const Block& block) {
  const auto t = static_cast<blasint>(sizes_.context);
  const auto width = static_cast<blasint>(sizes_.width);
  const auto size = static_cast<blasint>(sizes_.width / sizes_.heads);
  for (std::int64_t i = 0; i < sizes_.batch * sizes_.heads; ++i) {
    const std::int64_t row = i / sizes_.heads * sizes_.context;
    const std::int64_t column = i % sizes_.heads * size;
    const float* q = block.qkv.data() + row * 3 * width + column;
    const float* ct = block.mixed.data() + row * width + column;  // of the mixture
    const float* scores = block.scores.data() + i * t * t;
    float* ct_q = ct_qkv_.data() + row * 3 * width + column;
    float* ct_scores = ct_scores_.data() + i * t * t;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t, t, size, 1, ct, width, q + 2 * width,
                3 * width, 0, ct_scores, t);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t, size, t, 1, scores, t, ct, width, 0,
                ct_q + 2 * width, 3 * width);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t, size, t, 1, ct_scores, t, q + width,
                3 * width, 0, ct_q, 3 * width);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t, size, t, 1, ct_scores, t, q, 3 * width,
                0, ct_q + width, 3 * width);
  }
}

void TransformerProducts::step() {
  const std::int64_t width = sizes_.width;
  for (Block& block : blocks_) {
    linear(block.x, block.joint, width, 3 * width, block.qkv);
    attention(block);
    linear(block.mixed, block.join, width, width, ct_x_);
    linear(block.x, block.up, width, 4 * width, block.hidden);
    linear(block.hidden, block.down, 4 * width, width, ct_x_);
  }
  linear(x_, head_, width, sizes_.vocabulary, logits_);
  linear_backward(x_, head_, width, sizes_.vocabulary, logits_);
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    Block& block = blocks_[i];
    linear_backward(block.hidden, block.down, 4 * width, width, block.x);
    linear_backward(block.x, block.up, width, 4 * width, block.hidden);
    linear_backward(block.mixed, block.join, width, width, block.x);
    attention_backward(block);
    linear_backward(block.x, block.joint, width, 3 * width, ct_qkv_);
  }
}

}  // namespace mulgrad::bench
