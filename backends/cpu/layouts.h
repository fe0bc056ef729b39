// Products that read and write their matrices as they lie: transposes and reshapes around a product
// become strides where the kernels take them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/product.h"
#include "backends/cpu/strided.h"
#include "core/program.h"

namespace mulgrad::cpu {

// A value seen in the memory of another.
struct View {
  ValueId base;
  Strides strides;  // per axis of the value, in elements
};

// Through the reshapes and transposes that move nothing.
View view_of(const Program& program, ValueId value);

// The strides that elements lying by `strides` have in another shape of as many elements; nothing
// where one axis would need two.
std::optional<Strides> reshaped_strides(const std::vector<std::int64_t>& from,
                                        const Strides& strides,
                                        const std::vector<std::int64_t>& to);

// The same backwards: the operand of a reshape or transpose lying so that its result lies by
// `strides`; nothing where it cannot.
std::optional<Strides> operand_strides(const Program& program, const Node& movement,
                                       const Strides& strides);

struct LaidOutProduct {
  ProductSpec spec;
  ValueId lhs;  // the values in whose memory the operands lie
  ValueId rhs;
};

// The product of a dot_general node of f32 or f64 whose result lies by `result`; nothing where the
// kernels want another order of its operands or its result.
std::optional<LaidOutProduct> lay_out(const Program& program, const Node& node,
                                      const Strides& result);

}  // namespace mulgrad::cpu
