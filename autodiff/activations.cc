#include "autodiff/activations.h"

#include <cmath>
#include <numbers>

namespace mulgrad {

Var ReLU::emit(Var x, std::span<const Var>, const LayerContext&) const { return maximum(x, 0); }

Var TanH::emit(Var x, std::span<const Var>, const LayerContext&) const { return tanh(x); }

Var Sigmoid::emit(Var x, std::span<const Var>, const LayerContext&) const { return logistic(x); }

std::vector<std::string> GELU::description() const {
  return {form_ == GeluForm::erf ? "GELU(erf)" : "GELU(tanh)"};
}

Var GELU::emit(Var x, std::span<const Var>, const LayerContext&) const {
  const Var half = x * 0.5;
  if (form_ == GeluForm::erf) return half * (erf(x * (1 / std::numbers::sqrt2)) + 1);
  const Var cube = x * x * x;
  return half * (tanh((x + cube * 0.044715) * std::sqrt(2 * std::numbers::inv_pi)) + 1);
}

}  // namespace mulgrad
