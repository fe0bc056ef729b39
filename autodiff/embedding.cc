#include "autodiff/embedding.h"

#include <string>

#include "autodiff/rows.h"

namespace mulgrad {
namespace {

std::vector<Parameter> table(std::int64_t rows, std::int64_t width, DType dtype) {
  return {{"table", {dtype, {rows, width}}, Initializer::normal(0.02)}};
}

}  // namespace

Embedding::Embedding(std::int64_t ids, std::int64_t width, DType dtype)
    : ids_(ids), width_(width), dtype_(dtype) {
  expect_size("Embedding", ids);
  expect_size("Embedding", width);
  expect_float("Embedding", dtype);
}

std::vector<Parameter> Embedding::parameters() const { return table(ids_, width_, dtype_); }

Var Embedding::emit(Var x, std::span<const Var> parameters, const LayerContext&) const {
  const Var one_hot = convert(is_id("Embedding", x, ids_, dtype_), dtype_);
  const Var rows = matmul(one_hot, parameters[0]);
  Shape result = x.shape();
  result.push_back(width_);
  return reshape(rows, result);
}

PositionEmbedding::PositionEmbedding(std::int64_t length, std::int64_t width, DType dtype)
    : length_(length), width_(width), dtype_(dtype) {
  expect_size("PositionEmbedding", length);
  expect_size("PositionEmbedding", width);
  expect_float("PositionEmbedding", dtype);
}

std::vector<Parameter> PositionEmbedding::parameters() const {
  return table(length_, width_, dtype_);
}

Var PositionEmbedding::emit(Var x, std::span<const Var> parameters, const LayerContext&) const {
  const Shape shape = x.shape();
  if (shape.rank() != 3 || !(shape[1] == Dim(length_)) || !(shape[2] == Dim(width_))) {
    throw Error(Category::shape_mismatch, "PositionEmbedding: found an input of shape " +
                                              shape.to_string() + ", expected [batch, " +
                                              std::to_string(length_) + ", " +
                                              std::to_string(width_) + "]");
  }
  return x + reshape(parameters[0], {1, length_, width_});
}

}  // namespace mulgrad
