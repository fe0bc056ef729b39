#include <algorithm>

#include "core/eval.h"

namespace mulgrad::eval {
namespace {

// One function per op and kind of element: floats in double, integers in 64 bits. The builder has
// refused every pair of op and dtype that has no function here.

template <class W>
concept Integer = std::is_integral_v<W>;

// Unsigned arithmetic wraps; the conversion back is modular.
template <Integer W>
std::uint64_t bits(W value) {
  return static_cast<std::uint64_t>(value);
}

double apply(const Negate&, double x) { return -x; }
template <Integer W>
W apply(const Negate&, W x) {
  return static_cast<W>(-bits(x));
}

double apply(const Abs&, double x) { return std::fabs(x); }
std::int64_t apply(const Abs&, std::int64_t x) {
  return x < 0 ? static_cast<std::int64_t>(-bits(x)) : x;
}

double apply(const Sign&, double x) {
  if (std::isnan(x) || x == 0) return x;
  return x > 0 ? 1 : -1;
}
std::int64_t apply(const Sign&, std::int64_t x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

double apply(const Exponential&, double x) { return std::exp(x); }
double apply(const ExponentialMinusOne&, double x) { return std::expm1(x); }
double apply(const Log&, double x) { return std::log(x); }
double apply(const LogPlusOne&, double x) { return std::log1p(x); }
double apply(const Sqrt&, double x) { return std::sqrt(x); }
double apply(const Rsqrt&, double x) { return 1 / std::sqrt(x); }
double apply(const Tanh&, double x) { return std::tanh(x); }
// The exponential of a negative number never overflows.
double apply(const Logistic&, double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
double apply(const Sine&, double x) { return std::sin(x); }
double apply(const Cosine&, double x) { return std::cos(x); }
double apply(const Floor&, double x) { return std::floor(x); }
double apply(const Ceil&, double x) { return std::ceil(x); }
double apply(const RoundNearestEven&, double x) { return std::nearbyint(x); }
double apply(const Erf&, double x) { return std::erf(x); }

double apply(const Add&, double a, double b) { return a + b; }
template <Integer W>
W apply(const Add&, W a, W b) {
  return static_cast<W>(bits(a) + bits(b));
}
double apply(const Subtract&, double a, double b) { return a - b; }
template <Integer W>
W apply(const Subtract&, W a, W b) {
  return static_cast<W>(bits(a) - bits(b));
}
double apply(const Multiply&, double a, double b) { return a * b; }
template <Integer W>
W apply(const Multiply&, W a, W b) {
  return static_cast<W>(bits(a) * bits(b));
}

double apply(const Divide&, double a, double b) { return a / b; }
std::uint64_t apply(const Divide&, std::uint64_t a, std::uint64_t b) {
  return b == 0 ? ~std::uint64_t{0} : a / b;
}
std::int64_t apply(const Divide&, std::int64_t a, std::int64_t b) {
  if (b == 0) return -1;
  if (b == -1) return static_cast<std::int64_t>(-bits(a));  // the minimum stays the minimum
  return a / b;
}

template <class W>
W apply(const Maximum&, W a, W b) {
  return larger(a, b);
}
template <class W>
W apply(const Minimum&, W a, W b) {
  return smaller(a, b);
}
template <class W>
W apply(const Clamp&, W low, W x, W high) {
  return smaller(larger(x, low), high);
}

double apply(const Power&, double a, double b) { return std::pow(a, b); }
std::uint64_t apply(const Power&, std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {  // square and multiply
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}
std::int64_t apply(const Power& op, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 && base != 1 && base != -1) return 0;
  // A base of 1 or -1 has the same power for an exponent and its two's complement.
  return static_cast<std::int64_t>(apply(op, bits(base), bits(exponent)));
}

template <Integer W>
W apply(const And&, W a, W b) {
  return a & b;
}
template <Integer W>
W apply(const Or&, W a, W b) {
  return a | b;
}

template <class W>
bool holds(Comparison direction, W a, W b) {
  switch (direction) {
    case Comparison::EQ:
      return a == b;
    case Comparison::NE:
      return a != b;
    case Comparison::LT:
      return a < b;
    case Comparison::LE:
      return a <= b;
    case Comparison::GT:
      return a > b;
    case Comparison::GE:
      return a >= b;
  }
  internal_check_failed("a comparison", __FILE__, __LINE__);
}

// Calls element(i) for every element of a result of the given type.
template <class T, class F>
Tensor generate(std::vector<std::int64_t> sizes, F element) {
  Tensor result(dtype_of<T>, std::move(sizes));
  const std::span<T> data = result.data<T>();
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = element(i);
  return result;
}

// The operands of an op all have the sizes of the result now.
template <class Struct, class T>
Tensor map(const Struct& op, std::vector<std::int64_t> sizes, Operands x) {
  using W = Wide<T>;
  const auto at = [&](std::size_t operand, std::size_t i) {
    return widen(x[operand]->template data<T>()[i]);
  };
  if constexpr (std::is_same_v<Struct, Not>) {
    if constexpr (std::is_same_v<T, bool>) {
      return generate<T>(sizes, [&](std::size_t i) { return at(0, i) == 0; });
    } else if constexpr (!is_float_type<T>) {
      return generate<T>(sizes,
                         [&](std::size_t i) { return narrow<T>(static_cast<W>(~at(0, i))); });
    }
  } else if constexpr (std::is_same_v<Struct, IsFinite>) {
    if constexpr (is_float_type<T>) {
      return generate<bool>(sizes, [&](std::size_t i) { return std::isfinite(at(0, i)); });
    }
  } else if constexpr (std::is_same_v<Struct, Compare>) {
    return generate<bool>(sizes,
                          [&](std::size_t i) { return holds(op.direction, at(0, i), at(1, i)); });
  } else if constexpr (std::is_same_v<Struct, Convert>) {
    if (op.dtype == dtype_of<T>) return *x[0];
    return dispatch(op.dtype, [&]<class To>(std::type_identity<To>) {
      return generate<To>(sizes, [&](std::size_t i) { return convert_to<To>(at(0, i)); });
    });
  } else if constexpr (std::is_same_v<Struct, StopGradient>) {
    return *x[0];
  } else if constexpr (std::is_same_v<Struct, Select>) {
    const std::span<const bool> predicate = x[0]->data<bool>();
    return generate<T>(sizes, [&](std::size_t i) {
      return x[predicate[i] ? 1 : 2]->template data<T>()[i];  // unwidened: the bits survive
    });
  } else if constexpr (requires { apply(op, W{}); }) {
    return generate<T>(sizes, [&](std::size_t i) { return narrow<T>(apply(op, at(0, i))); });
  } else if constexpr (requires { apply(op, W{}, W{}); }) {
    return generate<T>(sizes,
                       [&](std::size_t i) { return narrow<T>(apply(op, at(0, i), at(1, i))); });
  } else if constexpr (requires { apply(op, W{}, W{}, W{}); }) {
    return generate<T>(
        sizes, [&](std::size_t i) { return narrow<T>(apply(op, at(0, i), at(1, i), at(2, i))); });
  }
  internal_check_failed("an op that takes this dtype", __FILE__, __LINE__);
}

}  // namespace

Tensor evaluate_elementwise(const Node& node, std::span<const Tensor* const> values) {
  const std::vector<std::int64_t> sizes = node.type.shape.sizes();
  std::vector<Tensor> expanded;
  expanded.reserve(node.operands.size());  // `operands` points into it
  std::vector<const Tensor*> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i].is_literal()) {
      expanded.push_back(Tensor::filled(node.operands[i].literal(), sizes));
    } else if (std::ranges::equal(values[i]->sizes(), sizes)) {
      operands.push_back(values[i]);
      continue;
    } else {
      Axes dims;
      for (std::int64_t axis = 0; axis < values[i]->rank(); ++axis) dims.push_back(axis);
      expanded.push_back(broadcast(*values[i], sizes, dims));
    }
    operands.push_back(&expanded.back());
  }
  return std::visit(
      [&]<class Struct>(const Struct& op) -> Tensor {
        if constexpr (kIsElementwise<Struct>) {
          return dispatch(operands.back()->dtype(), [&]<class T>(std::type_identity<T>) {
            return map<Struct, T>(op, sizes, operands);
          });
        }
        internal_check_failed("an elementwise op", __FILE__, __LINE__);
      },
      node.op);
}

}  // namespace mulgrad::eval
