#include <limits>

#include "backends/cpu/elementwise.h"

namespace mulgrad::cpu {
namespace {

template <class T>
T sign_of(T x) {
  if (x == 0 || x != x) return x;  // zeros keep their sign, NaN stays
  return x > 0 ? T(1) : T(-1);
}

template <Floating T>
T logistic_of(T x) {
  // Either exponential is of a number <= 0, so none overflows.
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const T e = std::exp(x);
  return e / (1 + e);
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

template <Floating T>
std::optional<Kernel> float_kernel(OpKind kind, StridedLoop loop) {
  const auto map = [&](auto f) { return map_kernel<T, T>(f, std::move(loop)); };
  switch (kind) {
    case OpKind::Negate:
      return map([](T x) { return -x; });
    case OpKind::Abs:
      return map([](T x) { return std::abs(x); });
    case OpKind::Sign:
      return map([](T x) { return sign_of(x); });
    case OpKind::Exponential:
      return map([](T x) { return std::exp(x); });
    case OpKind::ExponentialMinusOne:
      return map([](T x) { return std::expm1(x); });
    case OpKind::Log:
      return map([](T x) { return std::log(x); });
    case OpKind::LogPlusOne:
      return map([](T x) { return std::log1p(x); });
    case OpKind::Sqrt:
      return map([](T x) { return std::sqrt(x); });
    case OpKind::Rsqrt:
      return map([](T x) { return 1 / std::sqrt(x); });
    case OpKind::Tanh:
      return map([](T x) { return std::tanh(x); });
    case OpKind::Logistic:
      return map([](T x) { return logistic_of(x); });
    case OpKind::Sine:
      return map([](T x) { return std::sin(x); });
    case OpKind::Cosine:
      return map([](T x) { return std::cos(x); });
    case OpKind::Floor:
      return map([](T x) { return std::floor(x); });
    case OpKind::Ceil:
      return map([](T x) { return std::ceil(x); });
    case OpKind::RoundNearestEven:
      return map([](T x) { return std::nearbyint(x); });
    case OpKind::Erf:
      return map([](T x) { return std::erf(x); });
    case OpKind::IsFinite:
      return map_kernel<bool, T>([](T x) { return std::isfinite(x); }, std::move(loop));
    default:
      return std::nullopt;
  }
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
    if constexpr (Floating<T>) {
      return float_kernel<T>(kind_of(op), std::move(loop));
    } else if constexpr (WholeNumber<T>) {
      return integer_kernel<T>(kind_of(op), std::move(loop));
    } else {
      if (!std::holds_alternative<Not>(op)) return std::nullopt;
      return map_kernel<bool, bool>([](bool x) { return !x; }, std::move(loop));
    }
  });
}

}  // namespace mulgrad::cpu
