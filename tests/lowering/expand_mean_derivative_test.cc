#include "lowering/expand_mean_derivative.h"

#include <gtest/gtest.h>

#include "tests/support/golden_cases.h"
namespace mulgrad {
namespace {
TEST(ExpandMeanDerivative, Cases_MatchTheirGoldens) {
  testing::check_golden_cases(expand_mean_derivative());
}
}  // namespace
}  // namespace mulgrad
