// Runs a program before and after a rewrite and compares what both compute.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/program.h"
#include "core/rewrite/numerics.h"
#include "core/tensor.h"

namespace mulgrad::testing {

// How the elements of the inputs are made.
enum class Draw : std::uint8_t {
  mixed,    // floats in [-2, 2), integers -9..9 (unsigned 0..9), i1 either
  positive  // floats in [0.25, 2.25), integers 1..9, i1 either
};

// An input tensor per input of a program without symbols; the same numbers on every machine.
std::vector<Tensor> draw_inputs(const Program& program, Draw draw, std::uint64_t seed = 0);

// The same of special_values(): NaN, infinities, zeros of both signs, subnormals and the largest,
// as far as `numerics` speaks about them.
std::vector<Tensor> special_inputs(const Program& program, const Numerics& numerics);

// Distance in units in the last place; 0 for equal values, NaN against NaN and zeros of either
// sign. Huge when only one side is NaN or infinite.
std::uint64_t ulp_distance(const Literal& a, const Literal& b);

// Are the two programs, of one interface, equal in value as far as `numerics` promises? Tried on
// several random draws and on special values. Empty numerics: bit for bit; where a rounding is
// allowed, 64 eps of the largest element of an output. Symbols are bound to 3.
::testing::AssertionResult same_values(const Program& before, const Program& after,
                                       const Numerics& numerics);

}  // namespace mulgrad::testing
