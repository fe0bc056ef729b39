#include "autodiff/losses.h"

#include <string>
#include <vector>

#include "autodiff/rows.h"

namespace mulgrad {
namespace {

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
  const std::string where = "softmax_cross_entropy: ";
  expect_float("softmax_cross_entropy", logits.dtype());
  if (!is_integer(labels.dtype())) {
    throw Error(
        Category::dtype_mismatch,
        where + "found labels of dtype " + name_of(labels.dtype()) + ", expected an integer dtype");
  }
  const std::string found = where + "found labels of shape " + labels.shape().to_string() +
                            " for logits of shape " + logits.shape().to_string();
  if (logits.rank() < 2) {
    throw Error(Category::shape_mismatch, found + ", expected logits [..., rows, classes]");
  }
  const Shape shape = logits.shape();
  const Shape rows(std::vector<Dim>(shape.begin(), shape.end() - 1));
  if (labels.rank() == rows.rank() && labels.shape() == rows) return;
  const bool is_symbolic =
      labels.rank() == rows.rank() && !(is_static(logits) && is_static(labels));
  throw Error(is_symbolic ? Category::symbolic_shape_mismatch : Category::shape_mismatch,
              found + ", expected one label per row: " + rows.to_string());
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
  logits = as_rows("softmax_cross_entropy", logits);
  const Var z = shifted("softmax_cross_entropy", logits, kClasses);
  const Var log_total = log(sum(exp(z), {kClasses}, KeepDims::yes));  // [B,1], as all that follow

  const Var is_label =
      is_id("softmax_cross_entropy", labels, logits.shape()[kClasses], logits.dtype());
  const Var picked = sum(select(is_label, z, 0), {kClasses}, KeepDims::yes);
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
