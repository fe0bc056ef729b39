// Result types and the numbered constraints of every op (see core/README.md).
#pragma once

#include <span>
#include <variant>

#include "core/op.h"

namespace mulgrad {

// What inference knows of an operand: the type of a value (not null), or a literal.
using OperandType = std::variant<const Type*, Literal>;

// Brings attributes to their one stored form: negative axes counted from the front, reduction axes
// ascending, a splat Constant as a Fill. An axis out of range is left for infer() to refuse.
Op canonicalize(Op op, std::span<const OperandType> operands);

// The type of the result. Throws Error when a constraint does not hold; the message cites it, for
// example "DotGeneral C6". `op` is canonical.
Type infer(const Op& op, std::span<const OperandType> operands);

// The shape of an elementwise result by the two declared broadcasting ways: rank 0 against any, and
// at equal rank a literal 1 against any size. Throws broadcast_shape_mismatch, or
// symbolic_shape_mismatch where a symbol meets another size.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace mulgrad
