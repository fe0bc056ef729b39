#include <algorithm>

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
  Converted(const std::byte* bytes, const Block&) : p(reinterpret_cast<const U*>(bytes)) {}
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
BlockFunction narrow_function(const FunctionKey&) { return convert_each<float, double>; }
#else
// Lanes of double, stored as floats.
template <class T, Tail kTail>
struct ToNarrowed {
  ToValues<float, kTail> to;
  explicit ToNarrowed(std::byte* bytes) : to(bytes) {}
  template <class D>
  HWY_INLINE void at(D, std::int64_t i, hn::Vec<D> v) const {
    const hn::Rebind<float, D> narrow;
    to.at(narrow, i, hn::DemoteTo(narrow, v));
  }
  template <class D>
  HWY_INLINE void part(D, std::int64_t i, std::int64_t n, hn::Vec<D> v) const {
    const hn::Rebind<float, D> narrow;
    to.part(narrow, i, n, hn::DemoteTo(narrow, v));
  }
};
BlockFunction narrow_function(const FunctionKey& key) {
  return function_to<ToNarrowed, double, CopyOp, Values<double>>(key);
}
#endif

template <class T, class F>
BlockFunction one(const FunctionKey& key) {
  return key.forms[0] == Form::vector ? to_values<T, F, Values<T>>(key) : nullptr;
}

// The first operand is a vector.
template <template <class, Tail> class To, class T, class F>
BlockFunction two_to(const FunctionKey& key) {
  if (key.forms[0] != Form::vector) return nullptr;
  switch (key.forms[1]) {
    case Form::vector:
      return function_to<To, T, F, Values<T>, Values<T>>(key);
    case Form::scalar:
      return function_to<To, T, F, Values<T>, Splat<T>>(key);
#if MULGRAD_PERMUTES
    case Form::short_row:
      return function_to<To, T, F, Values<T>, ShortRows<T>>(key);
    case Form::short_column:
      return function_to<To, T, F, Values<T>, ShortColumns<T>>(key);
#endif
    case Form::long_row:
      return function_to<To, T, F, Values<T>, LongRows<T>>(key);
    case Form::long_column:
      return function_to<To, T, F, Values<T>, LongColumns<T>>(key);
    default:
      return nullptr;
  }
}
template <class T, class F>
BlockFunction two(const FunctionKey& key) {
  return two_to<ToValues, T, F>(key);
}
template <class T, class F>
BlockFunction two_ordered(const FunctionKey& key) {
  if (key.forms[0] == Form::vector) return two<T, F>(key);
  if (key.forms[1] != Form::vector) return nullptr;
  switch (key.forms[0]) {
    case Form::scalar:
      return to_values<T, F, Splat<T>, Values<T>>(key);
#if MULGRAD_PERMUTES
    case Form::short_row:
      return to_values<T, F, ShortRows<T>, Values<T>>(key);
    case Form::short_column:
      return to_values<T, F, ShortColumns<T>, Values<T>>(key);
#endif
    case Form::long_row:
      return to_values<T, F, LongRows<T>, Values<T>>(key);
    case Form::long_column:
      return to_values<T, F, LongColumns<T>, Values<T>>(key);
    default:
      return nullptr;
  }
}

template <class T>
BlockFunction compare_function(const FunctionKey& key) {
  switch (key.direction) {
    case Comparison::EQ:
      return two_to<ToTruths, T, EqualOp>(key);
    case Comparison::NE:
      return two_to<ToTruths, T, UnequalOp>(key);
    case Comparison::LT:
      return two_to<ToTruths, T, LessOp>(key);
    case Comparison::LE:
      return two_to<ToTruths, T, LessEqualOp>(key);
    case Comparison::GT:
      return two_to<ToTruths, T, GreaterOp>(key);
    case Comparison::GE:
      return two_to<ToTruths, T, GreaterEqualOp>(key);
  }
  return nullptr;
}

bool has_rows_or_columns(const FunctionKey& key) {
  return std::ranges::any_of(
      key.forms, [](Form form) { return form != Form::vector && form != Form::scalar; });
}

template <class T>
BlockFunction select_function(const FunctionKey& key) {
  const auto [predicate, a, b] = key.forms;
  if (predicate != Form::vector || has_rows_or_columns(key)) return nullptr;
  if (a == Form::vector) {
    if (b == Form::vector) return to_values<T, SelectOp, Truths, Values<T>, Values<T>>(key);
    return to_values<T, SelectOp, Truths, Values<T>, Splat<T>>(key);
  }
  if (b == Form::vector) return to_values<T, SelectOp, Truths, Splat<T>, Values<T>>(key);
  return to_values<T, SelectOp, Truths, Splat<T>, Splat<T>>(key);
}

template <class T>
BlockFunction clamp_function(const FunctionKey& key) {
  const auto [low, x, high] = key.forms;
  if (x != Form::vector || low != high || has_rows_or_columns(key)) return nullptr;
  if (low == Form::scalar) return to_values<T, ClampOp, Splat<T>, Values<T>, Splat<T>>(key);
  return to_values<T, ClampOp, Values<T>, Values<T>, Values<T>>(key);
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
      return two<T, AddOp>(key);
    case OpKind::Subtract:
      return two_ordered<T, SubtractOp>(key);
    case OpKind::Multiply:
      return two<T, MultiplyOp>(key);
    case OpKind::Divide:
      return two_ordered<T, DivideOp>(key);
    case OpKind::Maximum:
      return two<T, MaximumOp>(key);
    case OpKind::Minimum:
      return two<T, MinimumOp>(key);
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
  if (std::ranges::count(key.forms, Form::vector) < 3) return nullptr;
  switch (key.kind) {
    case OpKind::StopGradient:
      return to_values<Byte, CopyOp, Bytes>(key);
    case OpKind::Not:
      return to_values<Byte, NotOp, Bytes>(key);
    case OpKind::And:
      return to_values<Byte, AndOp, Bytes, Bytes>(key);
    case OpKind::Or:
      return to_values<Byte, OrOp, Bytes, Bytes>(key);
    case OpKind::Select:
      return to_values<Byte, ByteSelectOp, Bytes, Bytes, Bytes>(key);
    default:
      return nullptr;
  }
}

template <class T>
BlockFunction predicate_function(const FunctionKey& key) {
  if (key.kind == OpKind::Compare) return compare_function<T>(key);
  if (key.forms[0] != Form::vector) return nullptr;
  if (key.kind == OpKind::IsFinite) return to_truths<T, IsFiniteOp, Values<T>>(key);
  if (key.kind == OpKind::Convert) return to_truths<T, IsNonzeroOp, Values<T>>(key);
  return nullptr;
}

// To T from anything but T.
template <class T>
BlockFunction convert_function(const FunctionKey& key) {
  if (key.forms[0] != Form::vector) return nullptr;
  switch (key.operand) {
    case DType::i1:
      return to_values<T, OneOrZero, Truths>(key);
    case DType::i32:
      return to_values<T, CopyOp, Converted<std::int32_t>>(key);
    case DType::i64:
      return convert_each<T, std::int64_t>;
    default:
      break;
  }
  if constexpr (sizeof(T) == 4) {
    return key.operand == DType::f64 ? narrow_function(key) : nullptr;
  } else {
    return key.operand == DType::f32 ? to_values<T, CopyOp, Converted<float>>(key) : nullptr;
  }
}

BlockFunction find(const FunctionKey& key) {
  if (key.operand == key.result) {
    if (key.operand == DType::f32) return float_function<float>(key);
    if (key.operand == DType::f64) return float_function<double>(key);
    return key.operand == DType::i1 ? logical_function(key) : nullptr;
  }
  if (key.result == DType::i1) {
    if (key.operand == DType::f32) return predicate_function<float>(key);
    return key.operand == DType::f64 ? predicate_function<double>(key) : nullptr;
  }
  if (key.kind != OpKind::Convert) return nullptr;
  if (key.result == DType::f32) return convert_function<float>(key);
  return key.result == DType::f64 ? convert_function<double>(key) : nullptr;
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
