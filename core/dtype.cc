#include "core/dtype.h"

#include <bit>
#include <cmath>

namespace mulgrad {

std::uint64_t encode_float(int mantissa_bits, int exponent_bits, bool negative,
                           std::uint64_t significand, int exponent, bool sticky) {
  const std::uint64_t sign = std::uint64_t{negative} << (mantissa_bits + exponent_bits);
  if (significand == 0) return sign;
  const int leading = std::countl_zero(significand);
  significand <<= leading;
  const int top_exponent = exponent - leading + 63;  // of the leading bit, now bit 63
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int min_exponent = 1 - bias;
  const int shift =
      63 - mantissa_bits + (top_exponent < min_exponent ? min_exponent - top_exponent : 0);
  if (shift > 64) return sign;

  const std::uint64_t kept = shift == 64 ? 0 : significand >> shift;
  const std::uint64_t rest =
      shift == 64 ? significand : significand & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const bool up = rest > half || (rest == half && (sticky || (kept & 1) != 0));
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  if (top_exponent > bias) return sign | infinity;
  const std::uint64_t exponent_field =
      top_exponent < min_exponent ? 0 : static_cast<std::uint64_t>(top_exponent - min_exponent);
  // `kept` holds the implicit bit of a normal number, so it adds one to the exponent field; a carry
  // out of the mantissa does the same.
  const std::uint64_t magnitude = (exponent_field << mantissa_bits) + kept + (up ? 1 : 0);
  return sign | (magnitude > infinity ? infinity : magnitude);
}

template <int kMantissaBits, int kExponentBits>
SmallFloat<kMantissaBits, kExponentBits>::SmallFloat(double value) {
  constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << kExponentBits) - 1) << kMantissaBits;
  constexpr std::uint64_t kQuiet = std::uint64_t{1} << (kMantissaBits - 1);
  const bool negative = std::signbit(value);
  const std::uint64_t sign = std::uint64_t{negative} << (kMantissaBits + kExponentBits);
  if (std::isnan(value)) {
    bits = static_cast<std::uint16_t>(sign | kInfinity | kQuiet);
  } else if (std::isinf(value)) {
    bits = static_cast<std::uint16_t>(sign | kInfinity);
  } else {
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    bits = static_cast<std::uint16_t>(
        encode_float(kMantissaBits, kExponentBits, negative, significand, exponent - 53, false));
  }
}

template <int kMantissaBits, int kExponentBits>
SmallFloat<kMantissaBits, kExponentBits>::operator double() const {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kMaxField = (1 << kExponentBits) - 1;
  const bool negative = (bits >> (kMantissaBits + kExponentBits)) != 0;
  const int field = (bits >> kMantissaBits) & kMaxField;
  const int mantissa = bits & ((1 << kMantissaBits) - 1);
  double magnitude = 0;
  if (field == kMaxField) {
    magnitude = mantissa != 0 ? std::nan("") : INFINITY;
  } else if (field == 0) {
    magnitude = std::ldexp(mantissa, 1 - kBias - kMantissaBits);
  } else {
    magnitude = std::ldexp(mantissa + (1 << kMantissaBits), field - kBias - kMantissaBits);
  }
  return negative ? -magnitude : magnitude;
}

template struct SmallFloat<7, 8>;
template struct SmallFloat<10, 5>;

std::string_view to_string(DType dtype) {
  switch (dtype) {
#define X(name, storage) \
  case DType::name:      \
    return #name;
    MULGRAD_DTYPES(X)
#undef X
  }
  INTERNAL_CHECK(false);
  return {};
}

std::string_view type_spelling(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return "ui8";
    case DType::u16:
      return "ui16";
    case DType::u32:
      return "ui32";
    case DType::u64:
      return "ui64";
    default:
      return to_string(dtype);
  }
}

std::optional<DType> dtype_from_string(std::string_view text) {
#define X(name, storage) \
  if (text == #name || text == type_spelling(DType::name)) return DType::name;
  MULGRAD_DTYPES(X)
#undef X
  return std::nullopt;
}

bool is_float(DType dtype) { return dtype >= DType::bf16; }
bool is_unsigned(DType dtype) { return dtype >= DType::u8 && dtype <= DType::u64; }
bool is_integer(DType dtype) { return dtype >= DType::i8 && dtype <= DType::u64; }

std::int64_t byte_size(DType dtype) {
  return dispatch(dtype, []<class T>(std::type_identity<T>) { return std::int64_t{sizeof(T)}; });
}

int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 7;
    case DType::f16:
      return 10;
    case DType::f32:
      return 23;
    case DType::f64:
      return 52;
    default:
      INTERNAL_CHECK(is_float(dtype));
      return 0;
  }
}

int exponent_bits(DType dtype) {
  switch (dtype) {
    case DType::bf16:
    case DType::f32:
      return 8;
    case DType::f16:
      return 5;
    case DType::f64:
      return 11;
    default:
      INTERNAL_CHECK(is_float(dtype));
      return 0;
  }
}

}  // namespace mulgrad
