#include <limits>

#include "backends/cpu/elementwise.h"

namespace mulgrad::cpu {
namespace {

template <WholeNumber T>
T sign_of(T x) {
  return x == 0 ? T(0) : x > 0 ? T(1) : T(-1);
}

// Rounded to nearest even; to an integer truncated and saturated, NaN to 0; integers wrap.
template <class To, class From>
To converted(From x) {
  if constexpr (Floating<From> && WholeNumber<To>) {
    // 2^digits is exact in From, the maximum itself is not.
    const From limit = std::ldexp(From(1), std::numeric_limits<To>::digits);
    if (x != x) return 0;
    if (x >= limit) return std::numeric_limits<To>::max();
    if (x <= -limit) return std::numeric_limits<To>::min();
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
std::optional<Kernel> convert_kernel(DType dtype, StridedLoop loop) {
  return for_dtype(dtype, [&]<class To>(std::type_identity<To>) -> std::optional<Kernel> {
    return map_kernel<To, T>([](T x) { return converted<To>(x); }, std::move(loop));
  });
}

template <WholeNumber T>
std::optional<Kernel> integer_kernel(OpKind kind, StridedLoop loop) {
  const auto map = [&](auto f) { return map_kernel<T, T>(f, std::move(loop)); };
  switch (kind) {
    case OpKind::Negate:
      return map([](T x) { return wrapped<T>(-static_cast<Unsigned<T>>(x)); });
    case OpKind::Abs:
      return map([](T x) { return x < 0 ? wrapped<T>(-static_cast<Unsigned<T>>(x)) : x; });
    case OpKind::Sign:
      return map([](T x) { return sign_of(x); });
    case OpKind::Not:
      return map([](T x) { return static_cast<T>(~x); });
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Kernel> unary_kernel(const Op& op, const Type& operand, const Type& result) {
  StridedLoop loop = elementwise_loop(std::span(&operand, 1), result);
  return for_dtype(operand.dtype, [&]<class T>(std::type_identity<T>) -> std::optional<Kernel> {
    if (std::holds_alternative<Convert>(op)) {
      return convert_kernel<T>(result.dtype, std::move(loop));
    }
    if constexpr (WholeNumber<T>) {
      return integer_kernel<T>(kind_of(op), std::move(loop));
    } else {
      return std::nullopt;
    }
  });
}

}  // namespace mulgrad::cpu
