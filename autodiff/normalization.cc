#include "autodiff/normalization.h"

#include <cmath>
#include <string>

#include "autodiff/rows.h"

namespace mulgrad {
namespace {

void check(const char* where, std::int64_t width, double epsilon, DType dtype) {
  expect_size(where, width);
  expect_float(where, dtype);
  if (epsilon > 0 && std::isfinite(epsilon)) return;
  throw Error(Category::invalid_argument, std::string(where) + ": found the epsilon " +
                                              std::to_string(epsilon) +
                                              ", expected a positive number");
}

std::vector<Parameter> scale_and_shift(std::int64_t width, DType dtype) {
  const Type row{dtype, {1, width}};
  return {{"scale", row, Initializer::constant(1)}, {"shift", row, Initializer::zeros()}};
}

// x as rows of `width`.
Var rows_of_width(const char* where, Var x, std::int64_t width) {
  const Var rows = as_rows(where, x);
  if (rows.shape()[1] == Dim(width)) return rows;
  throw Error(Category::shape_mismatch, std::string(where) + ": found an input of shape " +
                                            x.shape().to_string() + ", expected a last size of " +
                                            std::to_string(width));
}

// Rows over the root of the mean of their squares.
Var over_root_mean_square(Var rows, double epsilon) {
  return rows * rsqrt(mean(rows * rows, {1}, KeepDims::yes) + epsilon);
}

std::vector<std::string> described(const char* layer, double epsilon) {
  return {std::string(layer) + "(epsilon=" + Literal::from_double(DType::f64, epsilon).to_string() +
          ")"};
}

}  // namespace

LayerNorm::LayerNorm(std::int64_t width, double epsilon, DType dtype)
    : width_(width), epsilon_(epsilon), dtype_(dtype) {
  check("LayerNorm", width, epsilon, dtype);
}

std::vector<Parameter> LayerNorm::parameters() const { return scale_and_shift(width_, dtype_); }

std::vector<std::string> LayerNorm::description() const { return described("LayerNorm", epsilon_); }

Var LayerNorm::emit(Var x, std::span<const Var> parameters, const LayerContext&) const {
  const Var rows = rows_of_width("LayerNorm", x, width_);
  const Var centred = rows - mean(rows, {1}, KeepDims::yes);
  const Var normal = over_root_mean_square(centred, epsilon_);
  return like_rows_of(x.shape(), normal * parameters[0] + parameters[1]);
}

RmsNorm::RmsNorm(std::int64_t width, double epsilon, DType dtype)
    : width_(width), epsilon_(epsilon), dtype_(dtype) {
  check("RmsNorm", width, epsilon, dtype);
}

std::vector<Parameter> RmsNorm::parameters() const { return scale_and_shift(width_, dtype_); }

std::vector<std::string> RmsNorm::description() const { return described("RmsNorm", epsilon_); }

Var RmsNorm::emit(Var x, std::span<const Var> parameters, const LayerContext&) const {
  const Var normal = over_root_mean_square(rows_of_width("RmsNorm", x, width_), epsilon_);
  return like_rows_of(x.shape(), normal * parameters[0] + parameters[1]);
}

}  // namespace mulgrad
