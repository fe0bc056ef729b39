// Parts of the interpreter, for core/eval_*.cc and core/interpreter.cc alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "core/program.h"
#include "core/tensor.h"

namespace mulgrad::eval {

using Operands = std::span<const Tensor* const>;  // none is null
using Sizes = std::span<const std::int64_t>;
using Strides = std::vector<std::int64_t>;

// Elements are computed in the widest type of their kind and rounded or wrapped once, by narrow().
// For f32 this is the same as computing in f32: double rounding through f64 is innocuous for the
// four operations and sqrt, as 53 >= 2 * 24 + 2 (S. Figueroa, "When is double rounding
// innocuous?", 1995). i1 is 0 or 1.
template <class T>
using Wide = std::conditional_t<
    is_float_type<T>, double,
    std::conditional_t<std::is_unsigned_v<T>, std::uint64_t, std::int64_t>>;  // bool is unsigned

template <class T>
Wide<T> widen(T value) {
  return static_cast<Wide<T>>(value);
}

template <class T>
T narrow(Wide<T> value) {
  return static_cast<T>(value);
}

template <class Struct>
inline constexpr bool kIsElementwise = false;
#define X(Struct, text, arity, op_class) \
  template <>                            \
  inline constexpr bool kIsElementwise<Struct> = OpClass::op_class == OpClass::elementwise;
#include "core/op_list.def"
#undef X

// What sums and products accumulate in: f32 for the 16-bit floats, f64 for the others; integers
// wrap.
template <class T>
using Accumulator = std::conditional_t<is_small_float<T>, float,
                                       std::conditional_t<is_float_type<T>, double, std::uint64_t>>;

inline double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;  // max(-0, +0) is +0
  return a > b ? a : b;
}
inline double smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class I>
requires std::is_integral_v<I> I larger(I a, I b) { return a > b ? a : b; }
template <class I>
requires std::is_integral_v<I> I smaller(I a, I b) { return a < b ? a : b; }

Strides row_major_strides(Sizes sizes);

// The offsets `start + sum of index[i] * strides[i]` of every index below `sizes`, in row-major
// order of the indices.
std::vector<std::int64_t> offsets(Sizes sizes, const Strides& strides, std::int64_t start = 0);

// Element i of the result is element from[i] of x.
Tensor pick(const Tensor& x, std::vector<std::int64_t> sizes, std::span<const std::int64_t> from);
// Element to[i] of the result becomes element i of x; the other elements stay.
void place(const Tensor& x, std::span<const std::int64_t> to, Tensor& result);
// x with operand axis i at result axis dims[i]; a size of 1 expands.
Tensor broadcast(const Tensor& x, std::vector<std::int64_t> sizes, const Axes& dims);

Tensor evaluate_elementwise(const Node& node, std::span<const Tensor* const> values);

Tensor evaluate(const Fill& op, const Type& type, Operands operands);
Tensor evaluate(const Constant& op, const Type& type, Operands operands);
Tensor evaluate(const Iota& op, const Type& type, Operands operands);
Tensor evaluate(const BroadcastInDim& op, const Type& type, Operands operands);
Tensor evaluate(const Reshape& op, const Type& type, Operands operands);
Tensor evaluate(const Transpose& op, const Type& type, Operands operands);
Tensor evaluate(const Slice& op, const Type& type, Operands operands);
Tensor evaluate(const Concatenate& op, const Type& type, Operands operands);
Tensor evaluate(const Pad& op, const Type& type, Operands operands);
Tensor evaluate(const Reduce& op, const Type& type, Operands operands);
Tensor evaluate(const Mean& op, const Type& type, Operands operands);
Tensor evaluate(const DotGeneral& op, const Type& type, Operands operands);
Tensor evaluate(const Custom& op, const Type& type, Operands operands);

// The value rounded once (saturated, wrapped) to T, as Convert does.
template <class T>
T convert_to(double value) {
  if constexpr (is_float_type<T>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;  // also for NaN
  } else {
    if (std::isnan(value)) return 0;
    // Both limits are exact as doubles: 2^digits is one above the maximum.
    if (value >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
      return std::numeric_limits<T>::max();
    }
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    return static_cast<T>(value);
  }
}
template <class T, class I>
requires std::is_integral_v<I> T convert_to(I value) {
  if constexpr (is_small_float<T>) {
    const bool negative = value < 0;
    const auto bits = static_cast<std::uint64_t>(value);
    return T::from_bits(static_cast<std::uint16_t>(
        encode_float(mantissa_bits(dtype_of<T>), exponent_bits(dtype_of<T>), negative,
                     negative ? ~bits + 1 : bits, 0, false)));
  } else {
    return static_cast<T>(value);  // bool: != 0; integers wrap; f32 and f64 round to nearest even
  }
}

}  // namespace mulgrad::eval
