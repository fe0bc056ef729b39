#include "backends/cpu/fused_functions.h"

// Highway compiles this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fused_arithmetic.cc"
#include <hwy/foreach_target.h>
// Behind foreach_target.
#include "backends/cpu/fused_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {
namespace {

#define MULGRAD_UNARY(Name, expression)      \
  struct Name {                              \
    template <class D, class V>              \
    static HWY_INLINE auto apply(D d, V x) { \
      static_cast<void>(d);                  \
      return expression;                     \
    }                                        \
  };
#define MULGRAD_BINARY(Name, expression)        \
  struct Name {                                 \
    template <class D, class V>                 \
    static HWY_INLINE auto apply(D, V a, V b) { \
      return expression;                        \
    }                                           \
  };

MULGRAD_UNARY(CopyOp, x)
MULGRAD_UNARY(NegateOp, hn::Neg(x))
MULGRAD_UNARY(AbsOp, hn::Abs(x))
MULGRAD_UNARY(SignOp, hn::IfThenElse(hn::Or(hn::Lt(x, hn::Zero(d)), hn::Gt(x, hn::Zero(d))),
                                     hn::CopySign(hn::Set(d, 1), x), x))
MULGRAD_UNARY(SqrtOp, hn::Sqrt(x))
MULGRAD_UNARY(RsqrtOp, hn::Div(hn::Set(d, 1), hn::Sqrt(x)))
// Highway's loops without vectors lose the sign of zeros.
MULGRAD_UNARY(FloorOp, hn::CopySign(hn::Floor(x), x))
MULGRAD_UNARY(CeilOp, hn::CopySign(hn::Ceil(x), x))
MULGRAD_UNARY(RoundOp, hn::CopySign(hn::Round(x), x))
MULGRAD_UNARY(IsFiniteOp, hn::IsFinite(x))
MULGRAD_UNARY(IsNonzeroOp, hn::Not(hn::Eq(x, hn::Zero(d))))  // NaN is
MULGRAD_UNARY(NotOp, hn::Xor(x, hn::Set(d, 1)))

MULGRAD_BINARY(SubtractOp, hn::Sub(a, b))
MULGRAD_BINARY(MultiplyOp, hn::Mul(a, b))
MULGRAD_BINARY(DivideOp, hn::Div(a, b))
MULGRAD_BINARY(AndOp, hn::And(a, b))
MULGRAD_BINARY(OrOp, hn::Or(a, b))
MULGRAD_BINARY(EqualOp, hn::Eq(a, b))
MULGRAD_BINARY(UnequalOp, hn::Not(hn::Eq(a, b)))  // NaN is unequal; Highway's Ne says otherwise
MULGRAD_BINARY(LessOp, hn::Lt(a, b))
MULGRAD_BINARY(LessEqualOp, hn::Le(a, b))
MULGRAD_BINARY(GreaterOp, hn::Gt(a, b))
MULGRAD_BINARY(GreaterEqualOp, hn::Ge(a, b))

struct OneOrZero {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Mask<D> mask) {
    return hn::IfThenElseZero(mask, hn::Set(d, 1));
  }
};
struct SelectOp {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Mask<D> mask, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::IfThenElse(mask, a, b);
  }
};
struct ByteSelectOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V p, V a, V b) {
    return hn::IfThenElse(hn::Ne(p, hn::Zero(d)), a, b);
  }
};
struct ClampOp {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V low, V x, V high) {
    return MinimumOp::apply(d, MaximumOp::apply(d, x, low), high);
  }
};

// Lanes of T made from elements of another type U, each rounded once.
template <class U>
struct Converted {
  const U* p;
  explicit Converted(const std::byte* bytes) : p(reinterpret_cast<const U*>(bytes)) {}
  template <class D>
  static HWY_INLINE hn::Vec<D> converted(D d, hn::Vec<hn::Rebind<U, D>> x) {
    if constexpr (sizeof(hn::TFromD<D>) > sizeof(U)) {
      return hn::PromoteTo(d, x);
    } else {
      return hn::ConvertTo(d, x);
    }
  }
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t i) const {
    return converted(d, hn::LoadU(hn::Rebind<U, D>(), p + i));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D d, std::int64_t i, std::int64_t n) const {
    return converted(d, load_part(hn::Rebind<U, D>(), p + i, n));
  }
};

template <class R, class A>
void convert_each(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                  std::int64_t n, const Block&) {
  R* to = reinterpret_cast<R*>(r);
  const A* from = reinterpret_cast<const A*>(a);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<R>(from[i]);
}

#if HWY_TARGET == HWY_SCALAR
// Highway narrows infinities to the largest number there.
BlockFunction narrow_function() { return convert_each<float, double>; }
#else
struct ToNarrowed {
  float* p;
  explicit ToNarrowed(std::byte* bytes) : p(reinterpret_cast<float*>(bytes)) {}
  template <class D>
  HWY_INLINE void at(D, std::int64_t i, hn::Vec<D> v) const {
    const hn::Rebind<float, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, v), narrow, p + i);
  }
  template <class D>
  HWY_INLINE void part(D, std::int64_t i, std::int64_t n, hn::Vec<D> v) const {
    const hn::Rebind<float, D> narrow;
    store_part(narrow, hn::DemoteTo(narrow, v), p + i, n);
  }
};
BlockFunction narrow_function() { return map1<double, CopyOp, ToNarrowed, Values<double>>; }
#endif

template <class T, class F, class To>
BlockFunction two(const FunctionKey& key) {
  if (key.forms[0] == Form::scalar) return nullptr;
  if (key.forms[1] == Form::scalar) return map2<T, F, To, Values<T>, Splat<T>>;
  return map2<T, F, To, Values<T>, Values<T>>;
}
template <class T, class F>
BlockFunction two_ordered(const FunctionKey& key) {
  if (key.forms[0] == Form::vector) return two<T, F, ToValues<T>>(key);
  if (key.forms[1] == Form::scalar) return nullptr;
  return map2<T, F, ToValues<T>, Splat<T>, Values<T>>;
}

template <class T>
BlockFunction compare_function(const FunctionKey& key) {
  switch (key.direction) {
    case Comparison::EQ:
      return two<T, EqualOp, ToTruths>(key);
    case Comparison::NE:
      return two<T, UnequalOp, ToTruths>(key);
    case Comparison::LT:
      return two<T, LessOp, ToTruths>(key);
    case Comparison::LE:
      return two<T, LessEqualOp, ToTruths>(key);
    case Comparison::GT:
      return two<T, GreaterOp, ToTruths>(key);
    case Comparison::GE:
      return two<T, GreaterEqualOp, ToTruths>(key);
  }
  return nullptr;
}

template <class T>
BlockFunction select_function(const FunctionKey& key) {
  using To = ToValues<T>;
  const auto [predicate, a, b] = key.forms;
  if (predicate == Form::scalar) return nullptr;
  if (a == Form::vector && b == Form::vector) {
    return map3<T, SelectOp, To, Truths, Values<T>, Values<T>>;
  }
  if (a == Form::vector) return map3<T, SelectOp, To, Truths, Values<T>, Splat<T>>;
  if (b == Form::vector) return map3<T, SelectOp, To, Truths, Splat<T>, Values<T>>;
  return map3<T, SelectOp, To, Truths, Splat<T>, Splat<T>>;
}

template <class T>
BlockFunction clamp_function(const FunctionKey& key) {
  const auto [low, x, high] = key.forms;
  if (x == Form::scalar || low != high) return nullptr;
  if (low == Form::scalar) {
    return map3<T, ClampOp, ToValues<T>, Splat<T>, Values<T>, Splat<T>>;
  }
  return map3<T, ClampOp, ToValues<T>, Values<T>, Values<T>, Values<T>>;
}

template <class T, class F>
BlockFunction one(const FunctionKey& key) {
  if (key.forms[0] == Form::scalar) return nullptr;
  return map1<T, F, ToValues<T>, Values<T>>;
}

template <class T>
BlockFunction float_function(const FunctionKey& key) {
  switch (key.kind) {
    case OpKind::StopGradient:
      return one<T, CopyOp>(key);
    case OpKind::Negate:
      return one<T, NegateOp>(key);
    case OpKind::Abs:
      return one<T, AbsOp>(key);
    case OpKind::Sign:
      return one<T, SignOp>(key);
    case OpKind::Sqrt:
      return one<T, SqrtOp>(key);
    case OpKind::Rsqrt:
      return one<T, RsqrtOp>(key);
    case OpKind::Floor:
      return one<T, FloorOp>(key);
    case OpKind::Ceil:
      return one<T, CeilOp>(key);
    case OpKind::RoundNearestEven:
      return one<T, RoundOp>(key);
    case OpKind::Add:
      return two<T, AddOp, ToValues<T>>(key);
    case OpKind::Subtract:
      return two_ordered<T, SubtractOp>(key);
    case OpKind::Multiply:
      return two<T, MultiplyOp, ToValues<T>>(key);
    case OpKind::Divide:
      return two_ordered<T, DivideOp>(key);
    case OpKind::Maximum:
      return two<T, MaximumOp, ToValues<T>>(key);
    case OpKind::Minimum:
      return two<T, MinimumOp, ToValues<T>>(key);
    case OpKind::Select:
      return select_function<T>(key);
    case OpKind::Clamp:
      return clamp_function<T>(key);
    default:
      return nullptr;
  }
}

BlockFunction logical_function(const FunctionKey& key) {
  using Byte = std::uint8_t;
  using Bytes = Values<Byte>;
  if (std::ranges::count(key.forms, Form::scalar) > 0) return nullptr;
  switch (key.kind) {
    case OpKind::StopGradient:
      return map1<Byte, CopyOp, ToValues<Byte>, Bytes>;
    case OpKind::Not:
      return map1<Byte, NotOp, ToValues<Byte>, Bytes>;
    case OpKind::And:
      return map2<Byte, AndOp, ToValues<Byte>, Bytes, Bytes>;
    case OpKind::Or:
      return map2<Byte, OrOp, ToValues<Byte>, Bytes, Bytes>;
    case OpKind::Select:
      return map3<Byte, ByteSelectOp, ToValues<Byte>, Bytes, Bytes, Bytes>;
    default:
      return nullptr;
  }
}

template <class T>
BlockFunction to_truths(const FunctionKey& key) {
  if (key.kind == OpKind::Compare) return compare_function<T>(key);
  if (key.forms[0] == Form::scalar) return nullptr;
  if (key.kind == OpKind::IsFinite) return map1<T, IsFiniteOp, ToTruths, Values<T>>;
  if (key.kind == OpKind::Convert) return map1<T, IsNonzeroOp, ToTruths, Values<T>>;
  return nullptr;
}

BlockFunction convert_function(const FunctionKey& key) {
  if (key.forms[0] == Form::scalar) return nullptr;
  if (key.result == DType::f32) {
    switch (key.operand) {
      case DType::f64:
        return narrow_function();
      case DType::i1:
        return map1<float, OneOrZero, ToValues<float>, Truths>;
      case DType::i32:
        return map1<float, CopyOp, ToValues<float>, Converted<std::int32_t>>;
      case DType::i64:
        return convert_each<float, std::int64_t>;
      default:
        return nullptr;
    }
  }
  if (key.result == DType::f64) {
    switch (key.operand) {
      case DType::f32:
        return map1<double, CopyOp, ToValues<double>, Converted<float>>;
      case DType::i1:
        return map1<double, OneOrZero, ToValues<double>, Truths>;
      case DType::i32:
        return map1<double, CopyOp, ToValues<double>, Converted<std::int32_t>>;
      case DType::i64:
        return convert_each<double, std::int64_t>;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

BlockFunction find(const FunctionKey& key) {
  const bool same = key.operand == key.result;
  if (same && key.operand == DType::f32) return float_function<float>(key);
  if (same && key.operand == DType::f64) return float_function<double>(key);
  if (same && key.operand == DType::i1) return logical_function(key);
  if (key.result == DType::i1 && key.operand == DType::f32) return to_truths<float>(key);
  if (key.result == DType::i1 && key.operand == DType::f64) return to_truths<double>(key);
  if (key.kind == OpKind::Convert) return convert_function(key);
  return nullptr;
}

}  // namespace
}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mulgrad::cpu {

HWY_EXPORT(find);
BlockFunction arithmetic_function(const FunctionKey& key) {
  return HWY_DYNAMIC_DISPATCH(find)(key);
}

}  // namespace mulgrad::cpu
#endif
