// The default pipelines: one readable list per target and slot.
#pragma once

#include <vector>

#include "core/rewrite/pass.h"
#include "lowering/target.h"

namespace mulgrad {

// The passes that bring an artifact of the slot to `target`, in order; the reason for each position
// stands beside it in the source. Sizes must be bound before. Derivatives are taken before: what
// the list leaves has no stop_gradient.
std::vector<Pass> default_pipeline(const Target& target, Slot slot);

}  // namespace mulgrad
