// What makes a rewriter's reply to a case right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/matcher/suite/cases.h"
#include "tests/matcher/suite/process.h"

namespace mulgrad::matcher {

enum class Level : std::uint8_t {
  meaning,  // what any right rewriter fulfils
  exact     // besides: our own nodes in our own order, and our own category of every error
};

// What is wrong with the reply, or nothing.
//
// rewritten: the exit code is 0, the output is a program of the same inputs and outputs, of the ops
//   in `left` as many nodes are left as it says, among those that an output depends on, and both
//   programs compute the same as far as `numerics` promises: on random inputs, and with every
//   special value of the dtype (zeros, subnormals, extremes, infinities, NaN) among them. Where
//   a value of the case has more than 100,000 elements, structure alone is judged.
// unchanged: the exit code is 0, and the output is a program equal to the case's.
// error: the exit code is not 0; or it is 0 and the program is unchanged.
//
// Anything else is wrong in all three: a signal, no end in time, a command that cannot be run.
std::optional<std::string> fault(const Case& asked, const Reply& reply, Level level);

}  // namespace mulgrad::matcher
