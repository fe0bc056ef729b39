// Normalisation over the last axis, on any number of leading axes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/layer.h"

namespace mulgrad {

// (x - mean) / sqrt(variance + epsilon) * scale + shift, mean and (biased) variance over the last
// axis, of `width`: Ba, Kiros and Hinton, "Layer normalization" (2016). scale[1,width] starts at 1,
// shift[1,width] at 0. Throws invalid_argument for a width below 1 and an epsilon that is not
// positive and finite, dtype_mismatch for a dtype other than float; forward() throws shape_mismatch
// unless x has a last axis of `width`, dtype_mismatch for another dtype.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(std::int64_t width, double epsilon = 1e-5, DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;
  std::vector<std::string> description() const override;

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::int64_t width_;
  double epsilon_;
  DType dtype_;
};

// x / sqrt(mean of x^2 + epsilon) * scale + shift: Zhang and Sennrich, "Root mean square layer
// normalization" (2019), with a shift that starts at 0. Else as LayerNorm.
class RmsNorm : public Layer {
 public:
  explicit RmsNorm(std::int64_t width, double epsilon = 1e-5, DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;
  std::vector<std::string> description() const override;

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::int64_t width_;
  double epsilon_;
  DType dtype_;
};

}  // namespace mulgrad
