#include "autodiff/dropout.h"

#include <string>

namespace mulgrad {

Dropout::Dropout(double rate) : rate_(rate) {
  if (rate >= 0 && rate < 1) return;
  throw Error(Category::invalid_argument,
              "Dropout: found the rate " + std::to_string(rate) + ", expected one in [0, 1)");
}

Var Dropout::emit(Var x, std::span<const Var>, const LayerContext& context) const {
  if (context.mode == Mode::evaluate || rate_ == 0) return x;
  if (!context.uniform) {
    throw Error(Category::invalid_argument,
                "Dropout: found no source of uniform numbers, expected one in training");
  }
  const Var kept = compare(Comparison::GE, context.uniform(x.shape()), rate_);
  return select(kept, x * (1 / (1 - rate_)), 0);
}

}  // namespace mulgrad
