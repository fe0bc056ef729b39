#include <cmath>
#include <limits>

#include "backends/cpu/fused_functions.h"

// Highway compiles this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fused_math.cc"
#include <hwy/foreach_target.h>
// Behind foreach_target.
#include <hwy/contrib/math/math-inl.h>

#include "backends/cpu/fused_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {
namespace {

// Highway's functions are within a few units in the last place over the range that they state;
// outside it, and at the special values, the results are made here.

template <class D>
HWY_INLINE hn::Vec<D> infinity(D d) {
  return hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
}

struct ExponentialOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    // Both limits are beyond the results 0 and infinity.
    constexpr bool kF32 = sizeof(hn::TFromD<D>) == 4;
    const V low = hn::Set(d, kF32 ? -105 : -1001);
    const V high = hn::Set(d, kF32 ? 89 : 710);
    const V y = hn::Exp(d, hn::Min(hn::Max(x, low), high));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

struct ExponentialMinusOneOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    constexpr bool kF32 = sizeof(hn::TFromD<D>) == 4;
    const V low = hn::Set(d, kF32 ? -105 : -1001);
    const V high = hn::Set(d, kF32 ? 89 : 710);
    const V y = hn::Expm1(d, hn::Min(hn::Max(x, low), high));
    return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, hn::Zero(d))), x, y);
  }
};

// y for x > 0 and finite; the other values of a logarithm with its pole at 0.
template <class D, class V>
HWY_INLINE V with_pole(D d, V x, V y) {
  y = hn::IfThenElse(hn::Lt(x, infinity(d)), y, x);  // infinity and NaN
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity(d)), y);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::NaN(d), y);
}

struct LogOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    return with_pole(d, x, hn::Log(d, x));
  }
};

struct LogPlusOneOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    const V y = hn::Add(x, hn::Set(d, 1));
    return with_pole(d, y, hn::Log1p(d, x));
  }
};

struct TanhOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
  }
};

struct LogisticOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    // The exponential of a negative number never overflows.
    const V one = hn::Set(d, 1);
    const V e = ExponentialOp::apply(d, hn::Neg(hn::Abs(x)));
    const V y = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

// f32: x p(x^2) / q(x^2), fitted to erf(x) / x over [0, 3.92] by weighted least squares until the
// largest relative error, 1.9e-8, no longer fell; behind it erf rounds to 1. Within 2^-21 relative.
struct ErfOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V x) {
    const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
    const V size = hn::Min(hn::Abs(x), c(3.92F));
    const V t = hn::Mul(size, size);
    V p = hn::MulAdd(c(2.0500648646992055e-06F), t, c(2.8481320252395244e-04F));
    p = hn::MulAdd(p, t, c(3.7636692622351284e-03F));
    p = hn::MulAdd(p, t, c(5.2742584669100756e-02F));
    p = hn::MulAdd(p, t, c(1.9036468634531425e-01F));
    p = hn::MulAdd(p, t, c(1.1283791467238895e+00F));
    V q = hn::MulAdd(c(3.808786033186159e-05F), t, c(1.1620161882279103e-03F));
    q = hn::MulAdd(q, t, c(1.4965320323408906e-02F));
    q = hn::MulAdd(q, t, c(1.1409129098993621e-01F));
    q = hn::MulAdd(q, t, c(5.020390619007367e-01F));
    q = hn::MulAdd(q, t, c(1));
    const V y = hn::Min(hn::Div(hn::Mul(size, p), q), c(1));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
  }
};

// What has no vector version of the accuracy that is asked for.
template <class T, T (*kFunction)(T)>
void each(std::byte* r, const std::byte* a, const std::byte*, const std::byte*, std::int64_t n,
          const Block&) {
  T* to = reinterpret_cast<T*>(r);
  const T* from = reinterpret_cast<const T*>(a);
  for (std::int64_t i = 0; i < n; ++i) to[i] = kFunction(from[i]);
}

template <class T, int kExponentStep>
void power_each(std::byte* r, const std::byte* a, const std::byte* b, const std::byte*,
                std::int64_t n, const Block&) {
  T* to = reinterpret_cast<T*>(r);
  const T* base = reinterpret_cast<const T*>(a);
  const T* exponent = reinterpret_cast<const T*>(b);
  for (std::int64_t i = 0; i < n; ++i) to[i] = std::pow(base[i], exponent[i * kExponentStep]);
}

template <class T>
BlockFunction power_function(const FunctionKey& key) {
  if (key.forms[0] != Form::vector) return nullptr;
  if (key.forms[1] == Form::scalar) return power_each<T, 0>;
  return key.forms[1] == Form::vector ? power_each<T, 1> : nullptr;
}

template <class T>
BlockFunction float_function(const FunctionKey& key) {
  if (key.kind == OpKind::Power) return power_function<T>(key);
  if (key.forms[0] != Form::vector) return nullptr;
  switch (key.kind) {
    case OpKind::Exponential:
      return to_values<T, ExponentialOp, Values<T>>(key);
    case OpKind::ExponentialMinusOne:
      return to_values<T, ExponentialMinusOneOp, Values<T>>(key);
    case OpKind::Log:
      return to_values<T, LogOp, Values<T>>(key);
    case OpKind::LogPlusOne:
      return to_values<T, LogPlusOneOp, Values<T>>(key);
    case OpKind::Tanh:
      return to_values<T, TanhOp, Values<T>>(key);
    case OpKind::Logistic:
      return to_values<T, LogisticOp, Values<T>>(key);
    case OpKind::Sine:
      return each<T, std::sin>;
    case OpKind::Cosine:
      return each<T, std::cos>;
    case OpKind::Erf:
      if constexpr (sizeof(T) == 4) {
        return to_values<T, ErfOp, Values<T>>(key);
      } else {
        return each<T, std::erf>;
      }
    default:
      return nullptr;
  }
}

BlockFunction find(const FunctionKey& key) {
  if (key.operand != key.result) return nullptr;
  if (key.operand == DType::f32) return float_function<float>(key);
  if (key.operand == DType::f64) return float_function<double>(key);
  return nullptr;
}

}  // namespace
}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mulgrad::cpu {

HWY_EXPORT(find);
BlockFunction math_function(const FunctionKey& key) { return HWY_DYNAMIC_DISPATCH(find)(key); }

}  // namespace mulgrad::cpu
#endif
