#include "core/literal.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace mulgrad {
namespace {

static_assert(std::endian::native == std::endian::little);

Literal encode(DType dtype, bool negative, std::uint64_t significand, int exponent, bool sticky) {
  return {dtype, encode_float(mantissa_bits(dtype), exponent_bits(dtype), negative, significand,
                              exponent, sticky)};
}

// The digits of a decimal number without leading and trailing zeros, and its exponent, so that the
// value is 0.d1d2d3... * 10^exponent. `text` holds digits, at most one point, an optional exponent.
struct Decimal {
  std::string digits;
  long exponent = 0;
};

Decimal decompose(std::string_view text) {
  Decimal result;
  bool after_point = false;
  std::size_t i = 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      after_point = true;
      continue;
    }
    if (text[i] == '0' && result.digits.empty()) {
      if (after_point) --result.exponent;
      continue;
    }
    result.digits.push_back(text[i]);
    if (!after_point) ++result.exponent;
  }
  if (i < text.size()) {
    const std::string_view tail = text.substr(text[i + 1] == '+' ? i + 2 : i + 1);
    // Far beyond every dtype, and far enough from the end of the range for the sum below.
    constexpr long kLargest = 1'000'000'000'000;
    long exponent = 0;
    const auto [end, status] = std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
    if (status == std::errc::result_out_of_range) exponent = tail[0] == '-' ? -kLargest : kLargest;
    result.exponent += std::clamp(exponent, -kLargest, kLargest);
  }
  while (!result.digits.empty() && result.digits.back() == '0') result.digits.pop_back();
  return result;
}

// Sign of (decimal text - value), exactly; both are positive.
int compare_exactly(const Decimal& text, double value) {
  char buffer[800];
  // 767 significant digits hold every double exactly.
  const auto [end, status] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, 767);
  INTERNAL_CHECK(status == std::errc());
  const Decimal exact = decompose({buffer, static_cast<std::size_t>(end - buffer)});
  if (text.exponent != exact.exponent) return text.exponent < exact.exponent ? -1 : 1;
  const int order = text.digits.compare(exact.digits);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

bool is_decimal(std::string_view text, bool allow_fraction) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i > begin;
  };
  if (!digits()) return false;
  if (!allow_fraction) return i == text.size();
  if (i < text.size() && text[i] == '.') {
    ++i;
    digits();
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == text.size();
}

// `text` is a non-negative decimal. nullopt when it overflows the dtype.
std::optional<Literal> parse_float(DType dtype, bool negative, std::string_view text) {
  const Decimal decimal = decompose(text);
  const Literal zero = encode(dtype, negative, 0, 0, false);
  if (decimal.digits.empty()) return zero;
  if (dtype == DType::f32) {
    float value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status == std::errc()) return Literal::of(negative ? -value : value);
  } else {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status == std::errc() && dtype == DType::f64) {
      return Literal::of(negative ? -value : value);
    }
    if (status == std::errc()) {
      // The double nearest to the text may lie on the other side of a 16-bit midpoint, or on one:
      // round from what the exact decimal is relative to it.
      int exponent = 0;
      const double fraction = std::frexp(value, &exponent);
      const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
      const int order = compare_exactly(decimal, value);
      const std::uint64_t doubled = significand * 2 - (order < 0 ? 1 : 0);
      const Literal result = encode(dtype, negative, doubled, exponent - 54, order != 0);
      if (!result.is_finite()) return std::nullopt;
      return result;
    }
  }
  // Out of range: below the smallest subnormal rounds to zero, above the largest is no literal.
  if (decimal.exponent < 0) return zero;
  return std::nullopt;
}

std::string with_point_and_exponent(std::string text) {
  const std::size_t e = text.find('e');
  INTERNAL_CHECK(e != std::string::npos);
  if (text.find('.') == std::string::npos) text.insert(e, ".0");
  return text;
}

// The next larger decimal of as many digits ("1.55e+01" for "1.54e+01"). All nines never come here:
// the power of ten above them has fewer digits.
std::string next_up(std::string text) {
  for (std::size_t i = text.find('e'); i-- > 0;) {
    if (text[i] >= '0' && text[i] <= '8') {
      ++text[i];
      break;
    }
    if (text[i] == '9') text[i] = '0';
  }
  return text;
}

}  // namespace

Literal Literal::from_double(DType dtype, double value) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> Literal {
    if constexpr (is_float_type<T>) {
      return of(static_cast<T>(value));
    } else {
      const double limit = std::ldexp(1.0, 63);
      const bool whole = value == std::trunc(value);  // not for NaN
      if (whole && std::is_same_v<T, std::uint64_t> && value >= limit && value < 2 * limit) {
        return of(static_cast<T>(value));
      }
      if (!whole || value < -limit || value >= limit) {
        throw Error(Category::invalid_literal, "found " + std::to_string(value) +
                                                   ", expected an integer that fits dtype " +
                                                   std::string(mulgrad::to_string(dtype)));
      }
      return from_int(dtype, static_cast<std::int64_t>(value));
    }
  });
}

Literal Literal::from_int(DType dtype, std::int64_t value) {
  if (is_float(dtype)) {
    const bool negative = value < 0;
    const auto magnitude =
        negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    return encode(dtype, negative, magnitude, 0, false);
  }
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> Literal {
    if constexpr (std::is_integral_v<T>) {
      const T narrowed = static_cast<T>(value);
      const bool fits = std::is_same_v<T, bool> ? (value == 0 || value == 1)
                        : std::is_unsigned_v<T>
                            ? value >= 0 && static_cast<std::uint64_t>(narrowed) ==
                                                static_cast<std::uint64_t>(value)
                            : static_cast<std::int64_t>(narrowed) == value;
      if (!fits) {
        throw Error(Category::invalid_literal, "found " + std::to_string(value) +
                                                   ", which does not fit dtype " +
                                                   std::string(mulgrad::to_string(dtype)));
      }
      return of(narrowed);
    } else {
      INTERNAL_CHECK(false);
      return {};
    }
  });
}

Literal Literal::reciprocal(DType dtype, std::int64_t count) {
  INTERNAL_CHECK(count > 0 && is_float(dtype));
  const auto divisor = static_cast<std::uint64_t>(count);
  // Long division of 1 by count: 64 quotient bits from the first that is set, then a remainder.
  std::uint64_t quotient = 0;
  std::uint64_t remainder = 1;
  int exponent = 0;
  while (std::countl_zero(quotient) > 0 && exponent > -200) {
    remainder <<= 1;  // remainder < divisor < 2^63, so this never overflows
    quotient <<= 1;
    if (remainder >= divisor) {
      remainder -= divisor;
      quotient |= 1;
    }
    --exponent;
  }
  if (divisor == 1) return encode(dtype, false, 1, 0, false);
  return encode(dtype, false, quotient, exponent, remainder != 0);
}

Literal Literal::infinity(DType dtype, bool negative) {
  INTERNAL_CHECK(is_float(dtype));
  return from_double(dtype, negative ? -INFINITY : INFINITY);
}

Literal Literal::largest_finite(DType dtype) {
  if (is_float(dtype)) return {dtype, infinity(dtype).bits - 1};
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> Literal {
    if constexpr (std::is_integral_v<T>) return of(std::numeric_limits<T>::max());
    INTERNAL_CHECK(false);
    return {};
  });
}

Literal Literal::lowest_finite(DType dtype) {
  if (is_float(dtype)) return {dtype, infinity(dtype, true).bits - 1};
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> Literal {
    if constexpr (std::is_integral_v<T>) return of(std::numeric_limits<T>::min());
    INTERNAL_CHECK(false);
    return {};
  });
}

std::optional<Literal> Literal::parse(DType dtype, std::string_view text) {
  if (dtype == DType::i1) {
    if (text == "true") return of(true);
    if (text == "false") return of(false);
    return std::nullopt;
  }
  if (is_float(dtype) && (text.starts_with("0x") || text.starts_with("0X"))) {
    if (std::ssize(text) != 2 + 2 * byte_size(dtype)) return std::nullopt;
    std::uint64_t bits = 0;
    const auto [end, status] =
        std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return Literal{dtype, bits};
  }
  const bool negative = text.starts_with("-");
  const std::string_view magnitude = text.substr(negative ? 1 : 0);
  if (!is_decimal(magnitude, is_float(dtype))) return std::nullopt;
  if (is_float(dtype)) return parse_float(dtype, negative, magnitude);
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> std::optional<Literal> {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      T value{};
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
      return of(value);
    }
    return std::nullopt;
  });
}

std::string Literal::to_string() const {
  if (dtype == DType::i1) return bits != 0 ? "true" : "false";
  if (is_integer(dtype)) {
    return dtype == DType::u64 ? std::to_string(bits) : std::to_string(as_int());
  }
  if (!is_finite()) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string text = "0x";
    for (auto shift = byte_size(dtype) * 8 - 4; shift >= 0; shift -= 4) {
      text.push_back(kDigits[(bits >> shift) & 15]);
    }
    return text;
  }
  char buffer[64];
  const auto shortest = [&](auto value) {
    const auto [end, status] =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    INTERNAL_CHECK(status == std::errc());
    return with_point_and_exponent(std::string(buffer, end));
  };
  if (dtype == DType::f64) return shortest(as<double>());
  if (dtype == DType::f32) return shortest(as<float>());
  for (int precision = 1;; ++precision) {
    const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, as_double(),
                                             std::chars_format::scientific, precision);
    INTERNAL_CHECK(status == std::errc() && precision < 20);
    const std::string text(buffer, end);
    if (parse(dtype, text) == *this) return text;
    // A power of two has more room above than below: there the nearest decimal of so many digits
    // may be too low, and the next one fit.
    const std::string above = next_up(text);
    if (parse(dtype, above) == *this) return above;
  }
}

double Literal::as_double() const {
  return dispatch(dtype,
                  [&]<class T>(std::type_identity<T>) { return static_cast<double>(as<T>()); });
}

std::int64_t Literal::as_int() const {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> std::int64_t {
    if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(as<T>());
    INTERNAL_CHECK(false);
    return 0;
  });
}

bool Literal::is_finite() const { return !is_float(dtype) || std::isfinite(as_double()); }
bool Literal::is_nan() const { return is_float(dtype) && std::isnan(as_double()); }

}  // namespace mulgrad
