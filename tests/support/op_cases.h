// The one table of op cases. Inference, text round trip, interpreter, gradient checks and backend
// conformance all run over it, so a new op needs cases here and nowhere else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/custom.h"
#include "core/program.h"
#include "core/tensor.h"
#include "tests/support/near.h"

namespace mulgrad::testing {

// How the elements of an operand are made. Floats below are rounded to the dtype.
enum class Values : std::uint8_t {
  any,         // floats in [-2, 2), integers -9..9 (unsigned 0..9), i1 either
  positive,    // floats in [0.25, 2.25), integers 1..9
  nonzero,     // as `positive`, with either sign (unsigned: as `positive`)
  fractional,  // -3..3 plus [0.125, 0.375): away from integers and halves
  distinct,    // no two elements of all such operands of a case are equal, by at least 1/8
  special,     // special_values() in order; the operand has as many elements
  listed,      // `list`, in order
};

struct CaseOperand {
  Type type;
  Values values = Values::any;
  std::vector<double> list = {};
};

struct OpCase {
  std::string name;  // "<op>_<dtype>_<form>", unique
  Op op;
  std::vector<std::variant<CaseOperand, Literal>> operands;
  // How often the op may be derived with respect to its float operands and checked by finite
  // differences: 0 where it has no derivative, or one that is zero almost everywhere, 1 where it is
  // piecewise linear, 2 where it is smooth. The generators stay away from kinks and poles.
  int order = 0;
};

// In the order of core/op_list.def.
std::span<const OpCase> op_cases();

// NaN, infinities, zeros, subnormals, the largest; the extremes and small numbers for integers.
std::span<const Literal> special_values(DType dtype);

// A program with an input x0, x1 ... per operand that is no literal, one node, and the output "y".
Program program_of(const OpCase& op_case);

// Inputs of program_of(). The same numbers on every machine: SplitMix64 (S. Vigna, public domain)
// seeded by `seed`, the case's name and the operand's index; no library function whose rounding
// differs between systems.
std::vector<Tensor> inputs_of(const OpCase& op_case, std::uint64_t seed = 0);

// What an implementation of the op may differ by from the exact result rounded once.
Tolerance tolerance_of(const OpCase& op_case);

// The custom ops that the cases use, for a parser.
const CustomRegistry& case_customs();

}  // namespace mulgrad::testing
