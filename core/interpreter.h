// The reference interpreter: one plain function per op on host tensors, slow and obvious. It says
// what a program means, and every pass and backend is compared with it. See core/README.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/program.h"
#include "core/tensor.h"

namespace mulgrad {

// The result of one node, of the node's type. `values` holds an entry per operand, of the type that
// the node was inferred from; an entry whose operand is a literal is not read and may be null.
// Throws unresolved_symbolic_shape for a node of symbolic type, handler_contract_violation when a
// Custom op's own evaluation returns another type, and what that evaluation throws.
Tensor evaluate_node(const Node& node, std::span<const Tensor* const> values);

// Sees the result of every node, in program order.
using NodeObserver = std::function<void(ValueId, const Tensor&)>;

// Runs the program on `inputs`, in the order of program.inputs(), and returns its outputs and
// captures in the order of program.outputs(). A value is freed after its last use. Throws
// invalid_argument for a wrong number of inputs, dtype_mismatch or shape_mismatch naming the input
// that is not of its declared type, unresolved_symbolic_shape for a program that is not bound, and
// what evaluate_node throws, with the node named.
std::vector<Tensor> interpret(const Program& program, std::span<const Tensor> inputs,
                              const NodeObserver& observer = {});

}  // namespace mulgrad
