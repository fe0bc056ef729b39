#include "autodiff/dense.h"

#include <cmath>

#include "autodiff/rows.h"

namespace mulgrad {

Linear::Linear(std::int64_t in, std::int64_t out, DType dtype) : in_(in), out_(out), dtype_(dtype) {
  expect_size("Linear", in);
  expect_size("Linear", out);
  expect_float("Linear", dtype);
}

std::vector<Parameter> Linear::parameters() const {
  const Initializer start = Initializer::uniform(1 / std::sqrt(static_cast<double>(in_)));
  return {{"weight", {dtype_, {in_, out_}}, start}, {"bias", {dtype_, {1, out_}}, start}};
}

Var Linear::emit(Var x, std::span<const Var> parameters, const LayerContext&) const {
  const Var rows = as_rows("Linear", x);
  return like_rows_of(x.shape(), matmul(rows, parameters[0]) + parameters[1]);
}

}  // namespace mulgrad
