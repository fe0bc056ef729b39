// Loops over strided memory, prepared when a plan is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/lists.h"

namespace mulgrad::cpu {

using Strides = std::vector<std::int64_t>;  // in elements, outermost axis first

Strides row_major(std::span<const std::int64_t> sizes);
std::int64_t product(std::span<const std::int64_t> sizes);

// The strides of an operand of an elementwise op of the given result sizes: 0 where it expands.
Strides broadcast_strides(std::span<const std::int64_t> operand,
                          std::span<const std::int64_t> result);

// Walks some arrays together. Axes that lie alike in all arrays are merged; what is left of the
// innermost is a run of `length()` elements with a stride per array.
class StridedLoop {
 public:
  // At most four arrays: a result and the operands of an elementwise op.
  StridedLoop(std::span<const std::int64_t> sizes, std::span<const Strides> strides);

  std::int64_t length() const { return length_; }
  std::int64_t stride(std::size_t array) const { return inner_[array]; }

  // Calls run(offsets) with the offset of each array, for every run.
  template <class F>
  void for_each(F&& run) {
    if (empty_) return;
    for (;;) {
      run(static_cast<const std::int64_t*>(offsets_.begin()));
      std::size_t axis = outer_.size();
      while (axis > 0 && !advance(axis - 1)) --axis;
      if (axis == 0) return;  // every axis is back at 0, and so are the offsets
    }
  }

 private:
  using PerArray = ShortList<std::int64_t, 4>;
  struct Axis {
    std::int64_t size;
    PerArray strides;
    std::int64_t index = 0;
  };
  // False when the axis wraps around.
  bool advance(std::size_t axis);

  std::vector<Axis> outer_;
  PerArray offsets_;
  std::int64_t length_ = 1;
  PerArray inner_;
  bool empty_ = false;
};

}  // namespace mulgrad::cpu
