// Embeddings: of ids, and of the place in a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/layer.h"

namespace mulgrad {

// A row of table[ids,width] for every id: integers [...] to [...,width], as the product of a
// one-hot matrix with the table, so that it and its derivative need no gather or scatter. An id out
// of 0 .. ids-1 gives a row of zeros and must be refused where data is read. The table starts
// normal with a deviation of 0.02, as in GPT-2. Throws invalid_argument for a size below 1,
// dtype_mismatch for a dtype other than float; forward() throws dtype_mismatch for x that is not of
// an integer dtype and shape_mismatch for more ids than floats can count.
class Embedding : public Layer {
 public:
  Embedding(std::int64_t ids, std::int64_t width, DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;
  std::vector<std::string> description() const override { return {"Embedding"}; }
  std::optional<std::int64_t> ids() const override { return ids_; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::int64_t ids_;
  std::int64_t width_;
  DType dtype_;
};

// x[B,T,width] + table[T,width]: a learned row for every place of a sequence of `length`. The table
// starts as Embedding's. Throws as Embedding; forward() throws shape_mismatch unless x is
// [B,length,width].
class PositionEmbedding : public Layer {
 public:
  PositionEmbedding(std::int64_t length, std::int64_t width, DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;
  std::vector<std::string> description() const override { return {"PositionEmbedding"}; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::int64_t length_;
  std::int64_t width_;
  DType dtype_;
};

}  // namespace mulgrad
