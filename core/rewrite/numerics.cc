#include "core/rewrite/numerics.h"

#include <algorithm>
#include <limits>

namespace mulgrad {

Numerics Numerics::operator|(const Numerics& other) const {
  Numerics result;
  result.sign_of_zero = sign_of_zero || other.sign_of_zero;
  result.finite_only = finite_only || other.finite_only;
  result.reassociates = reassociates || other.reassociates;
  result.needs_exact_product = needs_exact_product || other.needs_exact_product;
  result.ulp = std::max(ulp, other.ulp);
  return result;
}

bool Numerics::allows(const Numerics& other) const { return (*this | other) == *this; }

std::string Numerics::to_string() const {
  std::string text;
  const auto add = [&](bool present, const std::string& name) {
    if (present) text += (text.empty() ? "" : ", ") + name;
  };
  add(sign_of_zero, "sign_of_zero");
  add(finite_only, "finite_only");
  add(reassociates, "reassociates");
  add(needs_exact_product, "needs_exact_product");
  add(ulp > 0, "ulp(" + std::to_string(ulp) + ")");
  return "{" + text + "}";
}

Numerics Numerics::everything() {
  return {true, true, true, true, std::numeric_limits<int>::max()};
}

}  // namespace mulgrad
