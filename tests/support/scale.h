// How long the chains are that show a walk to be iterative and linear.
#pragma once

#include <cstdint>

namespace mulgrad::testing {

// Under the address sanitizer, whose frames are larger, a tenth is as hard on recursion and keeps
// the run short.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::int64_t kLongChain = 100'000;
#else
inline constexpr std::int64_t kLongChain = 1'000'000;
#endif

}  // namespace mulgrad::testing
