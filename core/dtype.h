// Element types, their C++ storage types, and correctly rounded conversions between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace mulgrad {

// Round-to-nearest-even encoding of significand * 2^exponent into a binary interchange format with
// `mantissa_bits` stored and `exponent_bits`; `sticky` says that the exact value is larger in
// magnitude by less than one unit of the significand. Overflow gives infinity, as IEEE 754 asks.
std::uint64_t encode_float(int mantissa_bits, int exponent_bits, bool negative,
                           std::uint64_t significand, int exponent, bool sticky);

// A 16-bit float of the given format. Conversion from double rounds once, to nearest even.
template <int kMantissaBits, int kExponentBits>
struct SmallFloat {
  std::uint16_t bits;

  SmallFloat() = default;  // trivial, so that tensors may be copied as bytes
  explicit SmallFloat(double value);
  static SmallFloat from_bits(std::uint16_t bits) {
    SmallFloat result;
    result.bits = bits;
    return result;
  }
  explicit operator double() const;
  explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }
};

using BFloat16 = SmallFloat<7, 8>;
using Float16 = SmallFloat<10, 5>;

extern template struct SmallFloat<7, 8>;
extern template struct SmallFloat<10, 5>;

// X(enumerator, C++ storage type). i1 is stored as one byte, 0 or 1.
#define MULGRAD_DTYPES(X) \
  X(i1, bool)             \
  X(i8, std::int8_t)      \
  X(i16, std::int16_t)    \
  X(i32, std::int32_t)    \
  X(i64, std::int64_t)    \
  X(u8, std::uint8_t)     \
  X(u16, std::uint16_t)   \
  X(u32, std::uint32_t)   \
  X(u64, std::uint64_t)   \
  X(bf16, BFloat16)       \
  X(f16, Float16)         \
  X(f32, float)           \
  X(f64, double)

enum class DType : std::uint8_t {
#define X(name, storage) name,
  MULGRAD_DTYPES(X)
#undef X
};

std::string_view to_string(DType dtype);
// As in tensor types: unsigned dtypes are ui8 to ui64 there.
std::string_view type_spelling(DType dtype);
// Takes both spellings.
std::optional<DType> dtype_from_string(std::string_view text);

template <class T>
inline constexpr DType dtype_of = [] {
#define X(name, storage) \
  if constexpr (std::is_same_v<T, storage>) return DType::name;
  MULGRAD_DTYPES(X)
#undef X
}();

// Calls f(std::type_identity<T>{}) with the storage type T of `dtype`.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
#define X(name, storage) \
  case DType::name:      \
    return f(std::type_identity<storage>{});
    MULGRAD_DTYPES(X)
#undef X
  }
  internal_check_failed("a dtype of the list", __FILE__, __LINE__);
}

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;
template <class T>
inline constexpr bool is_float_type = std::is_floating_point_v<T> || is_small_float<T>;

bool is_float(DType dtype);
bool is_unsigned(DType dtype);
bool is_integer(DType dtype);  // i1 is no integer
std::int64_t byte_size(DType dtype);

// Width in bits of the stored mantissa field and of the exponent field of a float dtype.
int mantissa_bits(DType dtype);
int exponent_bits(DType dtype);

}  // namespace mulgrad
