// What a rewrite may change in the values: a declared, tested set.
#pragma once

#include <string>

namespace mulgrad {

// Empty (the default) means bit-exact. The set of a pipeline is the union of its rules' sets.
struct Numerics {
  bool sign_of_zero = false;         // a zero's sign may change
  bool finite_only = false;          // as stated over finite inputs; Inf and NaN may spread
  bool reassociates = false;         // |err| <= n*eps*sum|terms| while no intermediate overflows
  bool needs_exact_product = false;  // wrong on a device whose products round their operands
  int ulp = 0;                       // within this many units in the last place

  bool operator==(const Numerics&) const = default;
  Numerics operator|(const Numerics& other) const;
  // Is every member of `other` in this set?
  bool allows(const Numerics& other) const;
  // "{sign_of_zero, ulp(1)}"; "{}" for bit-exact.
  std::string to_string() const;

  static Numerics everything();
};

}  // namespace mulgrad
