// Random programs around planted regions of the two mean expansions, and near misses of them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"

namespace mulgrad::testing {

// SplitMix64 (S. Vigna, public domain): the same numbers on every machine.
class Draw64 {
 public:
  explicit Draw64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  // 0 .. n-1
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// What the generator meant a node to be.
struct Plant {
  static constexpr int kGood = 0;        // all clauses hold
  static constexpr int kUnreached = -1;  // a mean that no output depends on

  std::int64_t node;  // the divide or the mean; the broadcast where there is no divide
  int clause;         // the one clause that fails, or one of the above
};

struct RandomProgram {
  Program program;
  std::vector<Plant> plants;  // in no order
};

// The clauses of the two rules that a valid program can fail. Clause 6 of the derivative's rule is
// not among them: the builder infers the type of a quotient from its operands.
inline constexpr int kMeanDerivativeClauses[] = {1, 2, 3, 4, 5, 7};
inline constexpr int kMeanClauses[] = {2, 3, 4, 5};

// 4 to 20 other nodes of many ops, dtypes and sizes, with good regions in half of the programs and
// a near miss in half. Sizes may be symbolic in [B]. The same program for the same seed.
RandomProgram random_mean_derivative(std::uint64_t seed);
RandomProgram random_mean(std::uint64_t seed);

}  // namespace mulgrad::testing
