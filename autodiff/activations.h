// Activations: elementwise layers without parameters, on any shape of a float dtype.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/layer.h"

namespace mulgrad {

// A layer that maps every element by itself.
class Activation : public Layer {
 public:
  std::vector<Parameter> parameters() const override { return {}; }
};

// max(x, 0). The derivative at 0 is 0.
class ReLU : public Activation {
 public:
  std::vector<std::string> description() const override { return {"ReLU"}; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
};

// tanh(x); the name Tanh is the op's.
class TanH : public Activation {
 public:
  std::vector<std::string> description() const override { return {"TanH"}; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
};

// 1 / (1 + e^-x).
class Sigmoid : public Activation {
 public:
  std::vector<std::string> description() const override { return {"Sigmoid"}; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
};

enum class GeluForm : std::uint8_t { erf, tanh };

// x times the standard normal distribution function at x: Hendrycks and Gimpel, "Gaussian error
// linear units" (2016).
//   erf   x/2 (1 + erf(x / sqrt(2))), which is that
//   tanh  x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), their approximation
class GELU : public Activation {
 public:
  explicit GELU(GeluForm form = GeluForm::erf) : form_(form) {}
  std::vector<std::string> description() const override;

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  GeluForm form_;
};

}  // namespace mulgrad
