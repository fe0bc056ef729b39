#include "tests/support/near.h"

#include <cmath>

namespace mulgrad::testing {
namespace {

bool is_near(const Literal& got, const Literal& want, double largest, Tolerance tolerance) {
  if (got == want) return true;
  if (!is_float(want.dtype)) return false;
  if (got.is_nan() || want.is_nan()) return got.is_nan() && want.is_nan();
  if (!got.is_finite() || !want.is_finite()) return got.as_double() == want.as_double();
  const double a = got.as_double();
  const double b = want.as_double();
  if (a == 0 && b == 0) return tolerance.zero_sign == ZeroSign::free;
  return std::fabs(a - b) <= tolerance.relative * std::fabs(b) + tolerance.of_largest * largest;
}

}  // namespace

::testing::AssertionResult near(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (!(got.type() == want.type())) {
    return ::testing::AssertionFailure() << "found the type " << got.type().to_string()
                                         << ", expected " << want.type().to_string();
  }
  double largest = 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const Literal element = want.element(i);
    if (element.is_finite()) largest = std::fmax(largest, std::fabs(element.as_double()));
  }
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    if (is_near(got.element(i), want.element(i), largest, tolerance)) continue;
    return ::testing::AssertionFailure()
           << "element " << i << " of " << want.type().to_string() << ": found "
           << got.element(i).to_string() << ", expected " << want.element(i).to_string();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace mulgrad::testing
