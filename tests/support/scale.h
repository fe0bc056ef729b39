// How long the chains are that show a walk to be iterative and linear.
#pragma once

#include <cstdint>

namespace mulgrad::testing {

// Under a sanitizer, whose frames are larger, a tenth is as hard on recursion and keeps the run
// short.
#ifdef MULGRAD_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline constexpr std::int64_t kLongChain = kSanitized ? 100'000 : 1'000'000;

}  // namespace mulgrad::testing
