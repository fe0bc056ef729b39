// The dense layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/layer.h"

namespace mulgrad {

// x[...,in] @ weight[in,out] + bias[1,out], on any number of leading axes. Both parameters start
// uniform within 1/sqrt(in), as PyTorch's Linear does. Throws invalid_argument for a size below 1
// and dtype_mismatch for a dtype other than float; forward() throws shape_mismatch for x of rank 0
// and matmul_shape_mismatch unless its last size is `in`.
class Linear : public Layer {
 public:
  Linear(std::int64_t in, std::int64_t out, DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;
  std::vector<std::string> description() const override { return {"Linear"}; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::int64_t in_;
  std::int64_t out_;
  DType dtype_;
};

}  // namespace mulgrad
