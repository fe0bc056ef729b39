// A scalar constant: a dtype and the bits of its value.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace mulgrad {

// NaN equals NaN of the same bits; -0 differs from 0.
struct Literal {
  DType dtype = DType::f32;
  std::uint64_t bits = 0;  // in the low bytes, the rest zero

  bool operator==(const Literal&) const = default;

  // Each rounds once, to nearest even. Throws invalid_literal when an integer dtype cannot hold the
  // value, or the value is no 0 or 1 for i1.
  static Literal from_double(DType dtype, double value);
  static Literal from_int(DType dtype, std::int64_t value);

  // The exact quotient 1/count rounded once; count > 0, float dtypes only.
  static Literal reciprocal(DType dtype, std::int64_t count);

  static Literal zero(DType dtype) { return {dtype, 0}; }
  static Literal one(DType dtype) { return from_int(dtype, 1); }
  static Literal infinity(DType dtype, bool negative = false);  // float dtypes only
  static Literal lowest_finite(DType dtype);                    // integers: the minimum
  static Literal largest_finite(DType dtype);                   // integers: the maximum

  // Reads a decimal number ("15", "1.5e+01", "-3", "true", "false") straight into `dtype`, or, for
  // a float dtype, a "0x" bit pattern of exactly its width. nullopt when the text is no such number
  // or the number is out of range (too small a float is no fault: it rounds to zero).
  static std::optional<Literal> parse(DType dtype, std::string_view text);

  // Shortest decimal text that parses back to the same bits: always with a point and an exponent
  // for floats; Inf and NaN as hex bit patterns.
  std::string to_string() const;

  // The value as a double: exact for every dtype but i64 and u64 above 2^53.
  double as_double() const;
  std::int64_t as_int() const;  // integer dtypes and i1; u64 wraps
  bool is_finite() const;
  bool is_nan() const;

  template <class T>
  T as() const;
  template <class T>
  static Literal of(T value);
};

template <class T>
T Literal::as() const {
  INTERNAL_CHECK(dtype_of<T> == dtype);
  T value;
  std::memcpy(&value, &bits, sizeof(T));  // little-endian hosts only, as asserted in literal.cc
  return value;
}

template <class T>
Literal Literal::of(T value) {
  Literal result{dtype_of<T>, 0};
  std::memcpy(&result.bits, &value, sizeof(T));
  return result;
}

}  // namespace mulgrad
