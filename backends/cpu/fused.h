// Fused loops: several elementwise ops and reductions as one pass over a [rows, columns] space, in
// blocks that stay in the cache, with vector instructions chosen at run time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/lists.h"
#include "core/op.h"
#include "lowering/plan.h"

namespace mulgrad::cpu {

// Where a value varies over the [rows, columns] space of a loop; stored packed.
enum class Extent : std::uint8_t {
  full,    // [rows, columns]
  row,     // [1, columns]: the same in every row
  column,  // [rows, 1]: the same in every column
  scalar   // [1, 1]
};

struct FusedInput {
  DType dtype;
  Extent extent;
  bool operator==(const FusedInput&) const = default;
};

// What a step reads: an input or an earlier step, by index, or a literal.
struct FromInput {
  std::int32_t index;
  bool operator==(const FromInput&) const = default;
};
struct FromStep {
  std::int32_t index;
  bool operator==(const FromStep&) const = default;
};
using FusedArgument = std::variant<FromInput, FromStep, Literal>;

// As many as an op of a loop reads.
using FusedArguments = ShortList<FusedArgument, 3>;

// One op of the loop, with the op's own semantics (core/op.h). Elementwise: an argument's extent is
// that of the step or broadcasts to it. Reduce of sum, max or min: full -> column (over columns),
// row or scalar, and column -> scalar, row -> scalar. A step of extent row or scalar that sums over
// rows is there only behind the loop: only elementwise steps of the same extent read it, and theirs
// are there only then as well.
struct FusedStep {
  Op op;
  FusedArguments arguments;
  DType dtype;
  Extent extent;
  bool operator==(const FusedStep&) const = default;
};

struct FusedLoop {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<FusedInput> inputs;
  std::vector<FusedStep> steps;
  std::vector<std::int32_t> results;  // the steps that are stored, in the order of the results
  bool operator==(const FusedLoop&) const = default;
};

// Whether loops can hold the op with these dtypes: the vector kernels cover f32, f64 and i1 between
// them, and convert from i32 and i64.
bool can_fuse(const Op& op, std::span<const DType> operands, DType result);
// The widest row that a loop with a reduction over columns takes: a row must stay in the cache.
std::int64_t max_fused_columns();

// Operand i is loop.inputs[i]; result i is step loop.results[i]. A result may lie over a full input
// of the same byte size, or over an input of its own extent, row or scalar. Bit-equal for any
// number of calls; sums of f32 accumulate in f64.
Kernel fused_kernel(const FusedLoop& loop);

// For the printed plan: "fused_f32 128x10 (subtract exponential reduce_sum divide)".
std::string fused_name(const FusedLoop& loop);

}  // namespace mulgrad::cpu
