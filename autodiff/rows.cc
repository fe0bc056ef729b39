#include "autodiff/rows.h"

#include <string>

namespace mulgrad {

Var as_rows(const char* where, Var x) {
  const Shape shape = x.shape();
  if (shape.rank() == 0) {
    throw Error(Category::shape_mismatch,
                std::string(where) + ": found an input of rank 0, expected a last axis to work on");
  }
  Dim rows = 1;
  for (std::int64_t axis = 0; axis + 1 < shape.rank(); ++axis) rows = rows * shape[axis];
  return reshape(x, {rows, shape[shape.rank() - 1]});
}

Var like_rows_of(const Shape& shape, Var rows) {
  Shape result = shape;
  result[result.rank() - 1] = rows.shape()[1];
  return reshape(rows, result);
}

Var is_id(const char* where, Var ids, const Dim& n, DType dtype) {
  if (!is_integer(ids.dtype())) {
    throw Error(Category::dtype_mismatch, std::string(where) + ": found dtype " +
                                              std::string(to_string(ids.dtype())) +
                                              ", expected an integer dtype");
  }
  const DType counting = dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::int64_t most = std::int64_t{1} << (mantissa_bits(counting) + 1);
  if (n.is_static() && (n.size() < 1 || n.size() > most)) {
    throw Error(Category::shape_mismatch, std::string(where) + ": found " + n.to_string() +
                                              " classes, expected 1 to " + std::to_string(most));
  }
  const Var id = reshape(convert(ids, counting), {ids.shape().elements(), 1});
  const Var classes = iota(ids.builder(), counting, {1, n}, 1);
  return compare(Comparison::EQ, id, classes);
}

}  // namespace mulgrad
