// Linking: programs put into one.
#pragma once

#include <span>
#include <vector>

#include "core/builder.h"

namespace mulgrad {

// Appends the nodes of `program` that its outputs and captures reach, with inputs[i] in place of
// its input i, and returns the values that stand for program.outputs(), in their order. Origins are
// carried along. Throws invalid_argument for a wrong number of inputs, dtype_mismatch or
// shape_mismatch for one of another type than declared.
std::vector<ValueId> append(Builder& builder, const Program& program,
                            std::span<const ValueId> inputs);

}  // namespace mulgrad
