// Parts of the matmul legaliser, for lowering/legalize*.cc alone: each function emits the ops that
// stand for one source op, on static shapes. Where a size is 0 they still read their operands, by
// products over nothing: a seed may not lose its way to the outputs.
#pragma once

#include <cstdint>

#include "core/expr.h"
#include "core/rewrite/numerics.h"
#include "lowering/target.h"

namespace mulgrad::legalize {

// Larger constants are not made: a shift matrix of an axis has the square of its size.
inline constexpr std::int64_t kMaxConstantElements = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxShiftedAxis = std::int64_t{1} << 12;
// Products of a batch that are written out one by one.
inline constexpr std::int64_t kMaxBatch = std::int64_t{1} << 12;
// Batches of a masked block product, which does that many times the work.
inline constexpr std::int64_t kMaxBlocks = 64;

inline constexpr Numerics kExact{};
inline constexpr Numerics kSignOfZero{.sign_of_zero = true};
inline constexpr Numerics kSum{.sign_of_zero = true, .reassociates = true};
inline constexpr Numerics kProduct{.finite_only = true, .reassociates = true};
inline constexpr Numerics kShifts{.sign_of_zero = true, .needs_exact_product = true};

std::int64_t elements(const Shape& shape);
// Is the permutation the identity once axes of size 1, which lie anywhere in memory, are left out?
bool keeps_order(const Shape& shape, const Axes& permutation);
// The transpose; a reshape, or nothing, where only axes of size 1 move.
Var reorder(Var x, const Axes& permutation);

// x is an i1 value as 0 and 1 of f32, and back.
Var to_numbers(Var x);
Var to_logical(Var x);

// The one element of x.
Var scalar_of(Var x);
// broadcast_in_dim(x, shape, dims): of a fill, a fill; of one element, ones times the element; else
// a product over an axis of size 1 with ones; i1 through f32.
Var broadcast(Var x, const Shape& shape, const Axes& dims);
// x at the shape of an elementwise result.
Var broadcast_operand(Var x, const Shape& shape);

// Reductions over `axes`, which are dropped.
Var sum_of(Var x, const Axes& axes);
Var mean_of(const Target& target, Var x, const Mean& op);
Var any_of(Var x, const Axes& axes);  // of i1
Var all_of(Var x, const Axes& axes);  // of i1
Var max_by_slices(Var x, const Axes& axes);
Var min_by_slices(Var x, const Axes& axes);
Var product_by_slices(Var x, const Axes& axes);
Var max_by_shifts(Var x, const Axes& axes);
Var min_by_shifts(Var x, const Axes& axes);

// How a dot_general is said, but for the transposes and reshapes around it.
enum class DotRoute : std::uint8_t {
  plain,    // one product; no batch, or one of size 1 or 0
  batched,  // one product with leading batching dims
  slices,   // a product per batch, of slices, concatenated
  blocks    // all rows by all columns of all batches, of which the equal batches are selected
};
Var dot(DotRoute route, Var lhs, Var rhs, const DotGeneral& op, const Shape& result);

}  // namespace mulgrad::legalize
