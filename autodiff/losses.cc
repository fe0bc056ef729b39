#include "autodiff/losses.h"

#include <string>

namespace mulgrad {
namespace {

constexpr std::int64_t kRows = 0;
constexpr std::int64_t kClasses = 1;

std::string name_of(DType dtype) { return std::string(to_string(dtype)); }

void expect_float(const char* where, DType dtype) {
  if (is_float(dtype)) return;
  throw Error(Category::dtype_mismatch,
              std::string(where) + ": found dtype " + name_of(dtype) + ", expected a float dtype");
}

bool is_static(Var x) { return x.shape().is_static(); }

// x moved along `axis` so that its largest entry is 0: exp() of it cannot overflow.
Var shifted(const char* where, Var x, std::int64_t axis) {
  expect_float(where, x.dtype());
  return x - stop_gradient(reduce(Reduction::max, x, {axis}, KeepDims::yes));
}

void check_cross_entropy(Var logits, Var labels) {
  const char* where = "softmax_cross_entropy";
  expect_float(where, logits.dtype());
  if (!is_integer(labels.dtype())) {
    throw Error(Category::dtype_mismatch, std::string(where) + ": found labels of dtype " +
                                              name_of(labels.dtype()) +
                                              ", expected an integer dtype");
  }
  const auto expect_rank = [&](const char* what, Var x, std::int64_t rank, const char* expected) {
    if (x.rank() == rank) return;
    throw Error(Category::shape_mismatch, std::string(where) + ": found " + what + " of shape " +
                                              x.shape().to_string() + ", expected " + expected);
  };
  expect_rank("logits", logits, 2, "rank 2: [rows, classes]");
  expect_rank("labels", labels, 1, "rank 1: [rows]");
  if (!(labels.shape()[kRows] == logits.shape()[kRows])) {
    throw Error(is_static(logits) && is_static(labels) ? Category::shape_mismatch
                                                       : Category::symbolic_shape_mismatch,
                std::string(where) + ": found labels of shape " + labels.shape().to_string() +
                    " for logits of shape " + logits.shape().to_string() +
                    ", expected one label per row");
  }
}

// The dtype that labels and class numbers meet in: one that holds every class number exactly.
DType counting_dtype(Var logits) {
  const DType dtype = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Dim classes = logits.shape()[kClasses];
  const std::int64_t most = std::int64_t{1} << (mantissa_bits(dtype) + 1);
  if (classes.is_static() && (classes.size() < 1 || classes.size() > most)) {
    throw Error(Category::shape_mismatch, "softmax_cross_entropy: found logits of shape " +
                                              logits.shape().to_string() + ", expected 1 to " +
                                              std::to_string(most) + " classes");
  }
  return dtype;
}

}  // namespace

Var softmax(Var x, std::int64_t axis) {
  const Var e = exp(shifted("softmax", x, axis));
  return e / sum(e, {axis}, KeepDims::yes);
}

Var log_softmax(Var x, std::int64_t axis) {
  const Var z = shifted("log_softmax", x, axis);
  return z - log(sum(exp(z), {axis}, KeepDims::yes));
}

Var softmax_cross_entropy(Var logits, Var labels) {
  check_cross_entropy(logits, labels);
  const DType counting = counting_dtype(logits);
  const Var z = shifted("softmax_cross_entropy", logits, kClasses);
  const Var log_total = log(sum(exp(z), {kClasses}, KeepDims::yes));  // [B,1], as all that follow

  const Var label = reshape(convert(labels, counting), {labels.shape()[kRows], 1});
  const Var classes = iota(logits.builder(), counting, {1, logits.shape()[kClasses]}, kClasses);
  const Var one_hot = convert(compare(Comparison::EQ, label, classes), logits.dtype());
  const Var picked = sum(one_hot * z, {kClasses}, KeepDims::yes);
  return mean(log_total - picked);
}

Var mse(Var prediction, Var target) {
  expect_float("mse", prediction.dtype());
  const std::string found = "mse: found a prediction " + prediction.type().to_string() +
                            " and a target " + target.type().to_string();
  if (prediction.dtype() != target.dtype()) {
    throw Error(Category::dtype_mismatch, found + ", expected equal dtypes");
  }
  if (!(prediction.shape() == target.shape())) {
    throw Error(is_static(prediction) && is_static(target) ? Category::shape_mismatch
                                                           : Category::symbolic_shape_mismatch,
                found + ", expected equal shapes");
  }
  const Var difference = prediction - target;
  return mean(difference * difference);
}

}  // namespace mulgrad
