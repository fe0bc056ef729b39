// The first thing to do with a new backend: run every op of the target on awkward values (NaN,
// infinities, zeros of both signs, subnormals) and compare with the reference interpreter.
#pragma once

#include <string>

#include "examples/custom_backend/library.h"

namespace mulgrad::examples {

// C functions that compute every op of Target::matmul_only() in f32 and f64. Aborts when an op of
// the target is missing, so the check cannot fall behind the library.
std::string c_check_ops();

// Runs them. "" when all agree with the interpreter: bit for bit where IEEE 754 settles the result,
// within 4 units in the last place where C's mathematical library computes it. Else a line per
// output that does not.
std::string check_ops(const CLibrary& library);

}  // namespace mulgrad::examples
