#include "backends/cpu/elementwise.h"

namespace mulgrad::cpu {
namespace {

template <WholeNumber T>
T quotient(T a, T b) {
  if (b == 0) return -1;
  if (b == -1) return wrapped<T>(-static_cast<Unsigned<T>>(a));  // the minimum stays the minimum
  return a / b;
}

// By squaring; a negative exponent truncates the reciprocal of the power towards 0.
template <WholeNumber T>
T power_of(T base, T exponent) {
  if (exponent < 0) {
    if (base != 1 && base != -1) return 0;
    return exponent % 2 == 0 ? T(1) : base;
  }
  auto factor = static_cast<Unsigned<T>>(base);
  Unsigned<T> result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= factor;
    factor *= factor;
  }
  return wrapped<T>(result);
}

template <class T>
Kernel compare_kernel(Comparison direction, StridedLoop loop) {
  const auto map = [&](auto f) { return map2_kernel<bool, T>(f, std::move(loop)); };
  switch (direction) {
    case Comparison::EQ:
      return map([](T a, T b) { return a == b; });
    case Comparison::NE:
      return map([](T a, T b) { return a != b; });
    case Comparison::LT:
      return map([](T a, T b) { return a < b; });
    case Comparison::LE:
      return map([](T a, T b) { return a <= b; });
    case Comparison::GT:
      return map([](T a, T b) { return a > b; });
    case Comparison::GE:
      return map([](T a, T b) { return a >= b; });
  }
  internal_check_failed("a comparison", __FILE__, __LINE__);
}

template <WholeNumber T>
std::optional<Kernel> integer_kernel(OpKind kind, StridedLoop loop) {
  using U = Unsigned<T>;
  const auto map = [&](auto f) { return map2_kernel<T, T>(f, std::move(loop)); };
  switch (kind) {
    case OpKind::Add:
      return map([](T a, T b) { return wrapped<T>(static_cast<U>(a) + static_cast<U>(b)); });
    case OpKind::Subtract:
      return map([](T a, T b) { return wrapped<T>(static_cast<U>(a) - static_cast<U>(b)); });
    case OpKind::Multiply:
      return map([](T a, T b) { return wrapped<T>(static_cast<U>(a) * static_cast<U>(b)); });
    case OpKind::Divide:
      return map([](T a, T b) { return quotient(a, b); });
    case OpKind::Maximum:
      return map([](T a, T b) { return larger(a, b); });
    case OpKind::Minimum:
      return map([](T a, T b) { return smaller(a, b); });
    case OpKind::Power:
      return map([](T a, T b) { return power_of(a, b); });
    case OpKind::And:
      return map([](T a, T b) { return static_cast<T>(a & b); });
    case OpKind::Or:
      return map([](T a, T b) { return static_cast<T>(a | b); });
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Kernel> binary_kernel(const Op& op, std::span<const Type> operands,
                                    const Type& result) {
  StridedLoop loop = elementwise_loop(operands, result);
  const DType dtype = operands[0].dtype;
  return for_dtype(dtype, [&]<class T>(std::type_identity<T>) -> std::optional<Kernel> {
    if constexpr (!Floating<T>) {
      if (const auto* compare = std::get_if<Compare>(&op)) {
        return compare_kernel<T>(compare->direction, std::move(loop));
      }
    }
    if constexpr (WholeNumber<T>) {
      return integer_kernel<T>(kind_of(op), std::move(loop));
    } else {
      return std::nullopt;
    }
  });
}

std::optional<Kernel> ternary_kernel(const Op& op, std::span<const Type> operands,
                                     const Type& result) {
  StridedLoop loop = elementwise_loop(operands, result);
  return for_dtype(result.dtype, [&]<class T>(std::type_identity<T>) -> std::optional<Kernel> {
    if constexpr (WholeNumber<T>) {
      if (std::holds_alternative<Select>(op)) {
        return map3_kernel<T, bool, T>([](bool p, T a, T b) { return p ? a : b; }, std::move(loop));
      }
      if (std::holds_alternative<Clamp>(op)) {
        return map3_kernel<T, T, T>(
            [](T low, T x, T high) { return smaller(larger(x, low), high); }, std::move(loop));
      }
    }
    return std::nullopt;
  });
}

std::optional<Kernel> elementwise_kernel(const Op& op, std::span<const Type> operands,
                                         const Type& result) {
  switch (operands.size()) {
    case 1:
      return unary_kernel(op, operands[0], result);
    case 2:
      return binary_kernel(op, operands, result);
    case 3:
      return ternary_kernel(op, operands, result);
    default:
      return std::nullopt;
  }
}

}  // namespace mulgrad::cpu
