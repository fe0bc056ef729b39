// Reverse mode: a program in, its derivative program out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"

namespace mulgrad {

// What to do for a `wrt` value that the outputs do not depend on, or only through operations whose
// derivative is zero almost everywhere.
enum class Unused : std::uint8_t {
  error,  // missing_derivative_behavior naming the value
  zero    // an explicit fill of zeros
};

struct DeriveOptions {
  Unused unused = Unused::error;
};

// `forward` is the given program with the values that the derivative reads marked as captured
// results c0, c1, ... (numbered by first use in the derivative; results already marked keep their
// names). Creations, and masks (i1) that elementwise and movement ops make, are made again instead.
// `derivative`, named as the forward program plus ".grad", has the inputs: one seed per
// output, named as the output and typed as it, then the captures; and the outputs: one gradient per
// `wrt` value in that order, named "grad." plus the name of the input ("grad.n7" for node %7),
// typed as it. The origin of its nodes is the node of `program` that they differentiate.
struct Derivative {
  Program forward;
  Program derivative;
};

// Derives the outputs at the indices `outputs` of program.outputs() with respect to `wrt` (inputs
// or nodes). Both programs print, parse, verify and can be derived again. Throws:
// invalid_selected_output for an index out of range, a repeated output, one that is not float or a
// captured result; missing_derivative_behavior (see Unused); dtype_not_differentiable for a `wrt`
// value of another dtype than float, invalid_argument for one that is repeated or not there;
// autodiff_not_implemented and non_differentiable_route naming the node, a Custom op without a
// derivative or one whose definition refuses; unresolved_symbolic_shape for a mean over a symbolic
// count.
Derivative derive(const Program& program, std::span<const std::int64_t> outputs,
                  std::span<const ValueId> wrt, DeriveOptions options = {});

// The same by name: outputs of role output, and inputs of role input. Throws also
// invalid_selected_output and invalid_argument for names that are not there.
Derivative derive(const Program& program, const std::vector<std::string>& outputs,
                  const std::vector<std::string>& wrt, DeriveOptions options = {});

// Forward and derivative in one self-contained program: the inputs of the forward program, then the
// seeds (as plain inputs named "ct." plus the output's name); the outputs of the forward program,
// then the gradients. Captures become plain links. A seed or gradient whose name is taken, as in
// the join of a second derivative, gets its prefix again: "grad.grad.x". What second derivatives
// start from.
Program join(const Derivative& derivative);

}  // namespace mulgrad
