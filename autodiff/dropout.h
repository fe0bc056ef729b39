// Dropout.
#pragma once

#include <span>
#include <vector>

#include "autodiff/layer.h"

namespace mulgrad {

// In training, each element is 0 with probability `rate` and x / (1 - rate) otherwise: Srivastava
// et al., "Dropout" (JMLR 2014), scaled so that the mean stays. An element goes where its uniform
// number, an input of the step (LayerContext::uniform), is below the rate; so the same elements go
// on every backend and target, and what goes is selected away, NaN and infinities too. The identity
// in evaluation and for rate 0. Throws invalid_argument unless 0 <= rate < 1; forward() throws it
// in training without a source of uniform numbers.
class Dropout : public Layer {
 public:
  explicit Dropout(double rate);
  std::vector<Parameter> parameters() const override { return {}; }
  std::vector<std::string> description() const override { return {"Dropout"}; }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  double rate_;
};

}  // namespace mulgrad
