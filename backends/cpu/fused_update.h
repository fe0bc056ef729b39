// Optimizer updates in one pass: loops whose steps are known are worked on a vector at a time, in
// registers, where a block at a time would wait for memory. The results are bit-equal.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/fused.h"

namespace mulgrad::cpu {

// The pointers are the results, then the arguments, as Update lists them; n elements each, or one.
using UpdateFunction = void (*)(std::byte* const* places, std::int64_t n);

inline constexpr std::size_t kMostUpdatePlaces = 17;

struct Update {
  UpdateFunction function;
  std::vector<std::int32_t> results;     // steps
  std::vector<FusedArgument> arguments;  // full inputs and scalars
};

Extent extent_of(const FusedLoop& loop, const FusedArgument& argument);

// The update that a loop of full and scalar values is, whatever its numbers: AdamW, with or without
// weight decay, or momentum without it, of a gradient that may be scaled by a scalar.
std::optional<Update> update_of(const FusedLoop& loop);

}  // namespace mulgrad::cpu
