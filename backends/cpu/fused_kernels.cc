#include "backends/cpu/fused_kernels.h"

namespace mulgrad::cpu {
namespace {

std::uint64_t hash_argument(std::uint64_t hash, const FusedArgument& argument) {
  hash = hash_mix(hash, argument.index());
  if (const auto* input = std::get_if<FromInput>(&argument)) {
    return hash_mix(hash, static_cast<std::uint64_t>(input->index));
  }
  if (const auto* step = std::get_if<FromStep>(&argument)) {
    return hash_mix(hash, static_cast<std::uint64_t>(step->index));
  }
  return hash_mix(hash, std::get<Literal>(argument).bits);
}

}  // namespace

// What loops differ in most often; the rest is left to ==.
std::size_t FusedKernels::Hash::operator()(const FusedLoop& loop) const {
  std::uint64_t hash =
      hash_mix(static_cast<std::uint64_t>(loop.rows), static_cast<std::uint64_t>(loop.columns));
  for (const FusedInput& input : loop.inputs) {
    hash = hash_mix(hash, static_cast<std::uint64_t>(input.extent));
  }
  for (const FusedStep& step : loop.steps) {
    hash = hash_mix(hash, hash_op(step.op));
    for (const FusedArgument& argument : step.arguments) hash = hash_argument(hash, argument);
  }
  for (const std::int32_t result : loop.results) {
    hash = hash_mix(hash, static_cast<std::uint64_t>(result));
  }
  return hash;
}

const NamedKernel& FusedKernels::of(const FusedLoop& loop) {
  const auto known = made_.find(loop);
  if (known != made_.end()) return known->second;
  return made_.emplace(loop, NamedKernel{fused_name(loop), fused_kernel(loop)}).first->second;
}

}  // namespace mulgrad::cpu
