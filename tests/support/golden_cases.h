// Golden files of passes; tests/lowering/cases/README.md describes them.
#pragma once

#include <cstdint>
#include <string>

#include "core/custom.h"
#include "core/rewrite/pass.h"

namespace mulgrad::testing {

// What a case may claim by the beginning of its name.
enum class Claim : std::uint8_t { changes, not_applied, refused, unbuildable };
Claim claim_of(const std::string& name);

struct Outcome {
  Claim claim;
  std::string text;  // the second part of a case, less its first line where that tells the claim
};

// What the pass makes of the program in `text`, with the checks of check_golden_cases on the way.
Outcome outcome_of(const Pass& pass, const std::string& text, const CustomRegistry& customs = {});

// Runs `pass` on every case in tests/lowering/cases/<pass.name>/ and compares the outcome with the
// file's second part. Beyond that, for each program that the pass changes: the result verifies,
// prints and parses back; a second run changes nothing; the pass manager finds the interface kept;
// emitted nodes carry the origin of what they replace; before and after compute the same as far as
// the pass's numerics promise. With MULGRAD_UPDATE_GOLDENS=1 in the environment, the second parts
// are rewritten instead of compared, and the other checks stay.
void check_golden_cases(const Pass& pass, const CustomRegistry& customs = {});

}  // namespace mulgrad::testing
