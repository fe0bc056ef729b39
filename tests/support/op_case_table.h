// The lines of the op-case table; see tests/support/op_cases.h.
#pragma once

#include <vector>

#include "tests/support/op_cases.h"

namespace mulgrad::testing {

std::vector<OpCase> make_op_cases();

}  // namespace mulgrad::testing
