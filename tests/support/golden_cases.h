// Golden files of passes; tests/lowering/cases/README.md describes them.
#pragma once

#include "core/custom.h"
#include "core/rewrite/pass.h"

namespace mulgrad::testing {

// Runs `pass` on every case in tests/lowering/cases/<pass.name>/ and compares the outcome with the
// file's second part. Beyond that, for each program that the pass changes: the result verifies,
// prints and parses back; a second run changes nothing; the pass manager finds the interface kept;
// emitted nodes carry the origin of what they replace; before and after compute the same as far as
// the pass's numerics promise. With MULGRAD_UPDATE_GOLDENS=1 in the environment, the second parts
// are rewritten instead of compared, and the other checks stay.
void check_golden_cases(const Pass& pass, const CustomRegistry& customs = {});

}  // namespace mulgrad::testing
