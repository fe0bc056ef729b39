#include "core/literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace mulgrad {
namespace {

constexpr DType kFloats[] = {DType::bf16, DType::f16, DType::f32, DType::f64};

struct Reading {
  DType dtype;
  std::string text;
  std::uint64_t bits;
};

TEST(Literal, DecimalText_RoundsOnceToNearestEven) {
  const Reading readings[] = {
      {DType::f64, "0.1", 0x3FB999999999999A},
      {DType::f32, "0.1", 0x3DCCCCCD},
      {DType::f16, "0.1", 0x2E66},
      {DType::bf16, "0.1", 0x3DCD},
      // Midpoints go to even, a hair beside them to the nearest; 1 + 2^-8 is bf16's first.
      {DType::bf16, "1.00390625", 0x3F80},
      {DType::bf16, "1.00390625000000000000000000000000000000000001", 0x3F81},
      {DType::bf16, "1.00390624999999999999999999999999999999999999", 0x3F80},
      {DType::bf16, "1.01171875", 0x3F82},
      {DType::bf16, "1.01171874999999999999999999999999999999999999", 0x3F81},
      {DType::f16, "1.00048828125", 0x3C00},
      {DType::f16, "1.000488281250000000000000000000000000000001", 0x3C01},
      {DType::f16, "-1.00146484375", 0xBC02},
      {DType::f32, "1.000000059604644775390625", 0x3F800000},
      // Rounding to a double first would land on the midpoint and lose this digit.
      {DType::f32, "1.00000005960464477539062500000000000000000001", 0x3F800001},
      {DType::f32, "16777217", 0x4B800000},
      {DType::f32, "16777217.0000000000000000000001", 0x4B800001},
      {DType::f64, "9007199254740993", 0x4340000000000000},
      {DType::f64, "9007199254740993.00000000000000000000001", 0x4340000000000001},
      // Subnormals, and their midpoints.
      {DType::f16, "5.9604644775390625e-8", 0x0001},
      {DType::f16, "2.98023223876953125e-8", 0x0000},
      {DType::f16, "2.980232238769531250000000000000000001e-8", 0x0001},
      {DType::f16, "8.94069671630859375e-8", 0x0002},
      {DType::bf16, "9.2e-41", 0x0001},
      {DType::f32, "1.4e-45", 0x00000001},
      {DType::f32, "7.006492321624085e-46", 0x00000000},
      {DType::f32, "7.006492321624086e-46", 0x00000001},
      {DType::f64, "4.9406564584124654e-324", 1},
      {DType::f64, "2.4703282292062327e-324", 0},
      {DType::f64, "2.4703282292062328e-324", 1},
      // The largest finite numbers, and the last text that rounds down to them.
      {DType::f16, "65519.9999999999999999999999", 0x7BFF},
      {DType::bf16, "3.3961e38", 0x7F7F},
      {DType::f32, "3.4028235677973366e38", 0x7F7FFFFF},
      {DType::f64, "1.7976931348623158e308", 0x7FEFFFFFFFFFFFFF},
      // Underflow is no fault, whatever the exponent.
      {DType::f64, "1e-400", 0},
      {DType::f64, "-1e-400", 0x8000000000000000},
      {DType::f32, "1e-9223372036854775808", 0},
      {DType::bf16, "1e-99999999999999999999", 0},
      {DType::f32, "-0", 0x80000000},
      {DType::f32, "0e9223372036854775807", 0},
      {DType::f32, "0.000e-5", 0},
      // Spellings.
      {DType::f32, "15", 0x41700000},
      {DType::f32, "15.", 0x41700000},
      {DType::f32, "1.5E1", 0x41700000},
      {DType::f32, "1.5e+01", 0x41700000},
      {DType::f32, "0150e-1", 0x41700000},
      {DType::f32, "15.0000001", 0x41700000},
      {DType::f32, "15.000001", 0x41700001},
      {DType::f64, "15.0000001", 0x402E0000035AFE53},
  };
  for (const Reading& reading : readings) {
    const auto literal = Literal::parse(reading.dtype, reading.text);
    ASSERT_TRUE(literal.has_value()) << to_string(reading.dtype) << " " << reading.text;
    EXPECT_EQ(literal->bits, reading.bits) << to_string(reading.dtype) << " " << reading.text;
  }
}

TEST(Literal, TextThatIsNoNumberOfTheDType_IsRefused) {
  const std::pair<DType, const char*> refused[] = {
      {DType::f16, "65520"},
      {DType::f16, "1e5"},
      {DType::bf16, "3.3962e38"},
      {DType::bf16, "1e400"},
      {DType::f32, "3.4028235677973367e38"},
      {DType::f32, "-1e39"},
      {DType::f64, "1.797693134862315809e308"},
      {DType::f64, "1e9223372036854775807"},
      {DType::f32, "1e99999999999999999999"},
      {DType::f32, ""},
      {DType::f32, "-"},
      {DType::f32, "+1"},
      {DType::f32, "--1"},
      {DType::f32, ".5"},
      {DType::f32, "1e"},
      {DType::f32, "1e+"},
      {DType::f32, "1.5 "},
      {DType::f32, "1.5f"},
      {DType::f32, "1.2.3"},
      {DType::f32, "inf"},
      {DType::f32, "nan"},
      {DType::f32, "true"},
      {DType::f32, "0x7FC0"},
      {DType::f32, "0x7FC00000F"},
      {DType::f32, "0x7FC0000G"},
      {DType::f32, "0x-FC00000"},
      {DType::f32, "-0x7FC00000"},
      {DType::i32, "1.0"},
      {DType::i32, "1e3"},
      {DType::i32, "0x00000001"},
      {DType::i32, "2147483648"},
      {DType::i32, "-2147483649"},
      {DType::i8, "128"},
      {DType::u8, "256"},
      {DType::u8, "-1"},
      {DType::u64, "18446744073709551616"},
      {DType::i64, "9223372036854775808"},
      {DType::i1, "1"},
      {DType::i1, "0"},
      {DType::i1, "True"},
  };
  for (const auto& [dtype, text] : refused) {
    EXPECT_FALSE(Literal::parse(dtype, text).has_value()) << to_string(dtype) << " " << text;
  }
}

TEST(Literal, IntegerText_IsExact) {
  const Reading readings[] = {
      {DType::i8, "-128", 0x80},
      {DType::u8, "255", 0xFF},
      {DType::i16, "-1", 0xFFFF},
      {DType::i32, "-2147483648", 0x80000000},
      {DType::i64, "9007199254740993", 0x20000000000001},
      {DType::i64, "-9223372036854775808", 0x8000000000000000},
      {DType::u64, "18446744073709551615", 0xFFFFFFFFFFFFFFFF},
      {DType::i32, "007", 7},
      {DType::i1, "true", 1},
      {DType::i1, "false", 0},
  };
  for (const Reading& reading : readings) {
    EXPECT_EQ(Literal::parse(reading.dtype, reading.text), (Literal{reading.dtype, reading.bits}))
        << reading.text;
  }
  EXPECT_EQ((Literal{DType::i8, 0x80}).to_string(), "-128");
  EXPECT_EQ((Literal{DType::u64, ~std::uint64_t{0}}).to_string(), "18446744073709551615");
  EXPECT_EQ(Literal::of(true).to_string(), "true");
}

TEST(Literal, HexPattern_IsTheBits) {
  EXPECT_EQ(Literal::parse(DType::bf16, "0xff80"), Literal::infinity(DType::bf16, true));
  EXPECT_EQ(Literal::parse(DType::f16, "0X7E01"), (Literal{DType::f16, 0x7E01}));
  EXPECT_EQ(Literal::parse(DType::f32, "0x7FA00001"), (Literal{DType::f32, 0x7FA00001}));
  EXPECT_EQ(Literal::parse(DType::f64, "0x3FF0000000000000"), Literal::one(DType::f64));
}

TEST(Literal, Floats_PrintWithPointAndExponent) {
  const std::pair<Literal, const char*> printed[] = {
      {Literal::one(DType::f32), "1.0e+00"},
      {Literal::from_double(DType::f32, 15), "1.5e+01"},
      {Literal::from_double(DType::f32, -0.0), "-0.0e+00"},
      {Literal::from_double(DType::f32, 0.1), "1.0e-01"},
      {Literal::from_double(DType::f64, 0.1), "1.0e-01"},
      {Literal::from_double(DType::f32, 16777216), "1.6777216e+07"},
      {Literal::from_double(DType::f64, 1e100), "1.0e+100"},
      {Literal::from_double(DType::bf16, 0.1), "1.0e-01"},
      {Literal::from_double(DType::f16, 65504), "6.55e+04"},
      {Literal::from_double(DType::f16, 0.015625), "1.563e-02"},
      {Literal::infinity(DType::f32), "0x7F800000"},
      {Literal::infinity(DType::bf16, true), "0xFF80"},
      {{DType::f64, 0x7FF0000000000001}, "0x7FF0000000000001"},
      {{DType::f32, 1}, "1.0e-45"},
  };
  for (const auto& [literal, text] : printed) EXPECT_EQ(literal.to_string(), text);
}

// The digits of a printed number and the exponent of the last one.
std::pair<std::string, long> digits_of(const std::string& text) {
  const std::size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  return {digits, std::stol(text.substr(e + 1)) - (std::ssize(digits) - 1)};
}

TEST(Literal, EverySixteenBitFloat_PrintsShortestAndReadsBack) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (std::uint64_t bits = 0; bits < 65536; ++bits) {
      const Literal literal{dtype, bits};
      const std::string text = literal.to_string();
      ASSERT_EQ(Literal::parse(dtype, text), literal) << text;
      if (!literal.is_finite()) continue;
      auto [digits, exponent] = digits_of(text);
      if (digits.size() <= 2) continue;  // a digit stands on both sides of the point
      // Neither decimal of one digit less that brackets the value reads back as it.
      digits.pop_back();
      for (const long long shorter : {std::stoll(digits), std::stoll(digits) + 1}) {
        const std::string other = (text[0] == '-' ? "-" : "") + std::to_string(shorter) + "e" +
                                  std::to_string(exponent + 1);
        ASSERT_NE(Literal::parse(dtype, other), literal) << text << " vs " << other;
      }
    }
  }
}

TEST(Literal, MidpointsOfEverySixteenBitFloat_RoundToEven) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::uint64_t infinity = Literal::infinity(dtype).bits;
    for (std::uint64_t bits = 0; bits + 1 < infinity; ++bits) {
      const double low = Literal{dtype, bits}.as_double();
      const double high = Literal{dtype, bits + 1}.as_double();
      char text[400];  // a double's decimal expansion in full
      std::snprintf(text, sizeof text, "%.200f", (low + high) / 2);
      ASSERT_EQ(Literal::parse(dtype, text)->bits, bits + (bits & 1)) << text;
      ASSERT_EQ(Literal::parse(dtype, std::string(text) + "1")->bits, bits + 1) << text;
    }
  }
}

TEST(Literal, WideFloats_PrintAndReadBack) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    for (const Literal& literal :
         {Literal{DType::f64, bits}, Literal{DType::f32, bits & 0xFFFFFFFF}}) {
      ASSERT_EQ(Literal::parse(literal.dtype, literal.to_string()), literal) << literal.to_string();
    }
  }
}

TEST(Literal, Reciprocal_RoundsTheExactQuotientOnce) {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;  // no double
  // 1/(2^53+1) = 2^-53 (1 - 2^-53 + ...): the double below 2^-53 is 2^-53 (1 - 2^-53), and the
  // quotient lies 2^-106 above it, so it rounds there; dividing by the rounded 2^53 would not.
  EXPECT_EQ(Literal::reciprocal(DType::f64, odd).bits, Literal::of(std::ldexp(1.0, -53)).bits - 1);
  EXPECT_EQ(Literal::reciprocal(DType::f32, odd), Literal::of(std::ldexp(1.0F, -53)));
  EXPECT_EQ(Literal::reciprocal(DType::f16, odd), Literal::zero(DType::f16));
  EXPECT_EQ(Literal::reciprocal(DType::f64, INT64_MAX), Literal::of(std::ldexp(1.0, -63)));
  for (const DType dtype : kFloats) {
    EXPECT_EQ(Literal::reciprocal(dtype, 1), Literal::one(dtype));
    EXPECT_EQ(Literal::reciprocal(dtype, 8), Literal::from_double(dtype, 0.125));
  }
  for (std::int64_t count = 1; count < 5000; ++count) {
    const auto exact = static_cast<double>(count);
    ASSERT_EQ(Literal::reciprocal(DType::f64, count), Literal::of(1.0 / exact));
    ASSERT_EQ(Literal::reciprocal(DType::f32, count),
              Literal::of(1.0F / static_cast<float>(exact)));
    // No quotient of so small a count is near a midpoint of 16 bits, so rounding twice is exact.
    ASSERT_EQ(Literal::reciprocal(DType::bf16, count),
              Literal::from_double(DType::bf16, 1.0 / exact));
    ASSERT_EQ(Literal::reciprocal(DType::f16, count),
              Literal::from_double(DType::f16, 1.0 / exact));
  }
}

TEST(Literal, FromInt_RoundsFloatsAndRefusesWhatIntegersCannotHold) {
  EXPECT_EQ(Literal::from_int(DType::f32, 16777217), Literal::of(16777216.0F));
  EXPECT_EQ(Literal::from_int(DType::f32, 16777219), Literal::of(16777220.0F));
  EXPECT_EQ(Literal::from_int(DType::f64, INT64_MIN), Literal::of(-std::ldexp(1.0, 63)));
  EXPECT_EQ(Literal::from_int(DType::f16, 65520), Literal::infinity(DType::f16));
  EXPECT_EQ(Literal::from_int(DType::i8, -128), Literal::of(std::int8_t{-128}));
  EXPECT_EQ(Literal::from_int(DType::i1, 1), Literal::of(true));
  for (const auto& [dtype, value] :
       {std::pair{DType::i8, std::int64_t{128}}, std::pair{DType::u8, std::int64_t{-1}},
        std::pair{DType::u64, std::int64_t{-1}}, std::pair{DType::i1, std::int64_t{2}}}) {
    try {
      Literal::from_int(dtype, value);
      ADD_FAILURE() << to_string(dtype) << " holds " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), Category::invalid_literal);
    }
  }
}

TEST(Literal, FromDouble_RefusesFractionsAndNaNForIntegers) {
  EXPECT_EQ(Literal::from_double(DType::i32, -3), Literal::of(std::int32_t{-3}));
  EXPECT_EQ(Literal::from_double(DType::i64, -std::ldexp(1.0, 63)), Literal::of(INT64_MIN));
  EXPECT_EQ(Literal::from_double(DType::u64, std::ldexp(1.0, 63)),
            Literal::of(std::uint64_t{1} << 63));
  EXPECT_THROW(Literal::from_double(DType::i64, std::ldexp(1.0, 63)), Error);
  EXPECT_THROW(Literal::from_double(DType::u64, std::ldexp(1.0, 64)), Error);
  EXPECT_THROW(Literal::from_double(DType::u64, -1), Error);
  for (const double value : {0.5, std::nan(""), double{INFINITY}, 3e9}) {
    EXPECT_THROW(Literal::from_double(DType::i32, value), Error) << value;
  }
  EXPECT_TRUE(Literal::from_double(DType::f16, 1e6) == Literal::infinity(DType::f16));
  EXPECT_TRUE(Literal::from_double(DType::bf16, std::nan("")).is_nan());
}

TEST(Literal, Equality_IsOfDTypeAndBits) {
  const Literal nan{DType::f32, 0x7FC00001};
  EXPECT_EQ(nan, nan);
  EXPECT_NE(nan, (Literal{DType::f32, 0x7FC00002}));
  EXPECT_NE(Literal::from_double(DType::f32, 0.0), Literal::from_double(DType::f32, -0.0));
  EXPECT_NE(Literal::one(DType::i32), Literal::one(DType::u32));
}

TEST(Literal, Extremes_AreThoseOfTheDType) {
  EXPECT_EQ(Literal::largest_finite(DType::f16).as_double(), 65504);
  EXPECT_EQ(Literal::lowest_finite(DType::f32).as_double(), -double{3.40282347e38F});
  EXPECT_EQ(Literal::lowest_finite(DType::i16).as_int(), -32768);
  EXPECT_EQ(Literal::largest_finite(DType::u8).as_int(), 255);
}

}  // namespace
}  // namespace mulgrad
