#include "autodiff/attention.h"

#include <cmath>
#include <optional>
#include <string>

#include "autodiff/losses.h"
#include "autodiff/rows.h"

namespace mulgrad {
namespace {

const char* const kName = "MultiHeadAttention";

const char* const kProjections[] = {"query", "key", "value", "output"};

// Which keys (last axis) each query may look at by its place: [1,1,T,T].
Var at_or_before(Builder& builder, const Dim& length) {
  const Shape shape{1, 1, length, length};
  const Var query = iota(builder, DType::f32, shape, 2);
  const Var key = iota(builder, DType::f32, shape, 3);
  return compare(Comparison::GE, query, key);
}

// Which keys hold a token: [B,1,1,T].
Var is_token(Var padding, const Dim& batch, const Dim& length) {
  if (!(padding.shape() == Shape{batch, length})) {
    const bool is_static = padding.shape().is_static() && Shape{batch, length}.is_static();
    throw Error(is_static ? Category::shape_mismatch : Category::symbolic_shape_mismatch,
                std::string(kName) + ": found padding of shape " + padding.shape().to_string() +
                    ", expected " + Shape{batch, length}.to_string());
  }
  const Var numbers = is_float(padding.dtype()) ? padding : convert(padding, DType::f32);
  return compare(Comparison::NE, reshape(numbers, {batch, 1, 1, length}), 0);
}

// [B,H,T,T] scores to weights: softmax over the keys that a query may look at. A place by itself is
// always allowed by `causal` alone, so -inf needs no further care there.
Var causal_softmax(Var scores, Var allowed) {
  return softmax(select(allowed, scores, Literal::infinity(scores.dtype(), true)), 3);
}

// The same where a query may be left without any key. Its weights are 0; and `has_key` [B,H,T,1].
struct MaskedSoftmax {
  Var weights;
  Var has_key;
};

MaskedSoftmax masked_softmax(Var scores, Var allowed) {
  // A finite number in place of -inf, so that no difference of infinities is made.
  const Var x = select(allowed, scores, Literal::lowest_finite(scores.dtype()));
  const Var z = x - stop_gradient(reduce(Reduction::max, x, {3}, KeepDims::yes));
  const Var e = select(allowed, exp(z), 0);
  const Var total = sum(e, {3}, KeepDims::yes);  // at least 1 where there is a key, else 0
  const Var has_key = compare(Comparison::GT, total, 0);
  return {e / select(has_key, total, 1), has_key};
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t width, std::int64_t heads, AttentionMask mask,
                                       double dropout, DType dtype)
    : width_(width),
      heads_(heads),
      mask_(mask),
      dropout_(dropout),
      projection_(width, width, dtype) {
  expect_size(kName, heads);
  if (width % heads == 0) return;
  throw Error(Category::invalid_argument,
              std::string(kName) + ": found width " + std::to_string(width) + " and " +
                  std::to_string(heads) + " heads, expected a width that they divide");
}

std::vector<Parameter> MultiHeadAttention::parameters() const {
  std::vector<Parameter> all;
  for (const char* const name : kProjections) {
    for (Parameter& parameter : prefixed(name, projection_.parameters())) {
      all.push_back(std::move(parameter));
    }
  }
  return all;
}

std::vector<std::string> MultiHeadAttention::description() const {
  return {std::string(kName) + "(heads=" + std::to_string(heads_) +
          ", mask=" + (mask_ == AttentionMask::causal ? "causal" : "none") + ")"};
}

Var MultiHeadAttention::emit(Var x, std::span<const Var> parameters,
                             const LayerContext& context) const {
  const Shape shape = x.shape();
  if (shape.rank() != 3 || !(shape[2] == Dim(width_))) {
    throw Error(Category::shape_mismatch, std::string(kName) + ": found an input of shape " +
                                              shape.to_string() + ", expected [batch, length, " +
                                              std::to_string(width_) + "]");
  }
  const Dim batch = shape[0];
  const Dim length = shape[1];
  const std::int64_t head_width = width_ / heads_;
  const Var rows = as_rows(kName, x);
  const auto project = [&](Var of, std::size_t i) {
    return projection_.forward(of, parameters.subspan(2 * i, 2), context);
  };
  const auto in_heads = [&](Var of) { return reshape(of, {batch, length, heads_, head_width}); };

  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  const Var query = in_heads(project(rows, 0) * scale);
  const Var key = in_heads(project(rows, 1));
  const Var value = in_heads(project(rows, 2));
  const Var scores = dot_general(query, key, {{0, 2}, {0, 2}, {3}, {3}, x.dtype()});  // [B,H,T,T]

  std::optional<Var> allowed;
  if (mask_ == AttentionMask::causal) allowed = at_or_before(x.builder(), length);
  std::optional<Var> has_key;
  std::optional<Var> weights;
  if (context.padding) {
    const Var tokens = is_token(*context.padding, batch, length);
    const MaskedSoftmax masked =
        masked_softmax(scores, allowed ? logical_and(*allowed, tokens) : tokens);
    weights = masked.weights;
    has_key = masked.has_key;
  } else {
    weights = allowed ? causal_softmax(scores, *allowed) : softmax(scores, 3);
  }
  const Var dropped = dropout_.forward(*weights, {}, context);
  Var mixed = dot_general(dropped, value, {{0, 1}, {0, 2}, {3}, {1}, x.dtype()});  // [B,H,T,D]
  if (has_key) mixed = select(*has_key, mixed, 0);
  const Var together = reshape(transpose(mixed, {0, 2, 1, 3}), rows.shape());
  return like_rows_of(shape, project(together, 3));
}

}  // namespace mulgrad
