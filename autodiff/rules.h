// The derivative of every op, as maths.
#pragma once

#include <cstdint>

#include "autodiff/sweep.h"

namespace mulgrad {

// Is the derivative zero almost everywhere (floor, compare, ...)? Such an op passes no cotangent.
bool has_zero_derivative(const Op& op);

// Runs the rule of a forward node with at least one wanted operand: contributes to the cotangent of
// each of them, given the cotangent `dy` of the result. Throws, with the node named,
// autodiff_not_implemented for a Custom op without a derivative, non_differentiable_route where its
// definition says so, handler_contract_violation where it returns what does not fit; and
// unresolved_symbolic_shape where a rule needs the number behind a symbol.
void apply_rule(Sweep& sweep, std::int64_t node, Var dy);

}  // namespace mulgrad
