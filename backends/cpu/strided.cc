#include "backends/cpu/strided.h"

namespace mulgrad::cpu {

Strides row_major(std::span<const std::int64_t> sizes) {
  Strides strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  return strides;
}

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

Strides broadcast_strides(std::span<const std::int64_t> operand,
                          std::span<const std::int64_t> result) {
  if (operand.empty()) return Strides(result.size());
  Strides strides = row_major(operand);
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (operand[axis] != result[axis]) strides[axis] = 0;
  }
  return strides;
}

StridedLoop::StridedLoop(std::span<const std::int64_t> sizes, std::span<const Strides> strides) {
  for (std::size_t a = 0; a < strides.size(); ++a) {
    offsets_.push_back(0);
    inner_.push_back(0);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) empty_ = true;
    if (sizes[i] == 1) continue;
    Axis axis{sizes[i], {}};
    for (const Strides& array : strides) axis.strides.push_back(array[i]);
    const bool merges = !outer_.empty() && [&] {
      for (std::size_t a = 0; a < strides.size(); ++a) {
        if (outer_.back().strides[a] != axis.strides[a] * axis.size) return false;
      }
      return true;
    }();
    if (merges) {
      axis.size *= outer_.back().size;
      outer_.back() = axis;
    } else {
      outer_.push_back(axis);
    }
  }
  if (outer_.empty()) return;
  length_ = outer_.back().size;
  inner_ = outer_.back().strides;
  outer_.pop_back();
}

bool StridedLoop::advance(std::size_t axis) {
  Axis& moved = outer_[axis];
  const bool wraps = ++moved.index == moved.size;
  const std::int64_t steps = wraps ? 1 - moved.size : 1;
  if (wraps) moved.index = 0;
  for (std::size_t a = 0; a < offsets_.size(); ++a) offsets_[a] += steps * moved.strides[a];
  return !wraps;
}

}  // namespace mulgrad::cpu
