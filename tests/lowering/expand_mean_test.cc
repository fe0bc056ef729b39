#include "lowering/expand_mean.h"

#include <gtest/gtest.h>

#include "tests/support/golden_cases.h"
namespace mulgrad {
namespace {
TEST(ExpandMean, Cases_MatchTheirGoldens) { testing::check_golden_cases(expand_mean()); }
}  // namespace
}  // namespace mulgrad
