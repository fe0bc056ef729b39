// The kernels of the CPU backend, as makers: each looks at a node once, when a plan is made, and
// returns what runs in every step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"
#include "lowering/plan.h"

namespace mulgrad::cpu {

// A kernel and the name that a printed plan shows.
struct NamedKernel {
  std::string name;
  Kernel kernel;
};

// "64x10".
std::string size_text(std::span<const std::int64_t> sizes);

// An elementwise op that loops cannot hold (backends/cpu/fused.h): of i32 and i64, from them and to
// them, and comparisons of i1. Operands of the given types (rank 0 for a literal); nothing when one
// of the dtypes has no kernels. The result may lie over an operand of the same size.
std::optional<Kernel> elementwise_kernel(const Op& op, std::span<const Type> operands,
                                         const Type& result);
// By number of operands; parts of the one above, apart to compile in parallel.
std::optional<Kernel> unary_kernel(const Op& op, const Type& operand, const Type& result);
std::optional<Kernel> binary_kernel(const Op& op, std::span<const Type> operands,
                                    const Type& result);
std::optional<Kernel> ternary_kernel(const Op& op, std::span<const Type> operands,
                                     const Type& result);

// Any dtype.
Kernel broadcast_kernel(const BroadcastInDim& op, const Type& operand);
Kernel transpose_kernel(const Axes& permutation, const Type& operand);
Kernel slice_kernel(const Slice& op, const Type& operand, const Type& result);
Kernel concatenate_kernel(const Concatenate& op, std::span<const Type> operands,
                          const Type& result);
Kernel pad_kernel(const Pad& op, const Type& operand, const Type& result);

// f32, f64, i32, i64 and, for `and` and `or`, i1; nothing for other dtypes. Sums and products of
// f32 accumulate in f64.
std::optional<Kernel> reduce_kernel(Reduction kind, const Axes& axes, const Type& operand);
std::optional<Kernel> mean_kernel(const Axes& axes, const Type& operand);  // f32 and f64

}  // namespace mulgrad::cpu
