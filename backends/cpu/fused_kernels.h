// The kernels of a plan's fused loops, each made once.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "backends/cpu/fused.h"
#include "backends/cpu/kernels.h"

namespace mulgrad::cpu {

// Equal loops share a kernel: the layers of a model are alike, and so are their loops.
class FusedKernels {
 public:
  // Stays where it is as long as this.
  const NamedKernel& of(const FusedLoop& loop);

 private:
  struct Hash {
    std::size_t operator()(const FusedLoop& loop) const;
  };
  std::unordered_map<FusedLoop, NamedKernel, Hash> made_;
};

}  // namespace mulgrad::cpu
