#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/scale.h"

namespace mulgrad {
namespace {

using testing::error_of;

TEST(Tensor, Fresh_IsZero) {
  const Tensor x(DType::i32, {2, 3});
  EXPECT_EQ(x, Tensor::of<std::int32_t>({2, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(x.type(), (Type{DType::i32, {2, 3}}));
  EXPECT_EQ(x.bytes().size(), 24u);
}

TEST(Tensor, FreshInReusedMemory_IsZero) {
  for (int i = 0; i < 3; ++i) {
    const Tensor x(DType::u8, {160});
    for (const std::uint8_t value : x.data<std::uint8_t>()) ASSERT_EQ(value, 0);
    Tensor::filled(Literal::largest_finite(DType::u8), {160});  // dirties what comes next
  }
}

TEST(Tensor, RankZeroAndEmpty_HaveOneAndNoElement) {
  EXPECT_EQ(Tensor(DType::f64, {}).elements(), 1);
  EXPECT_EQ(Tensor(DType::f64, {3, 0, 2}).elements(), 0);
  EXPECT_TRUE(Tensor(DType::f64, {0}).bytes().empty());
}

TEST(Tensor, Equality_ComparesBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Tensor::scalar(nan), Tensor::scalar(nan));
  EXPECT_FALSE(Tensor::scalar(0.0) == Tensor::scalar(-0.0));
  EXPECT_FALSE(Tensor::scalar(0.0f) == Tensor::scalar(0.0));
  EXPECT_FALSE(Tensor(DType::f32, {2, 3}) == Tensor(DType::f32, {3, 2}));
  EXPECT_FALSE(Tensor(DType::f32, {0, 3}) == Tensor(DType::f32, {3, 0}));
}

TEST(Tensor, Copy_IsDeep) {
  const Tensor x = Tensor::of<float>({2}, {1, 2});
  Tensor y = x;
  y.data<float>()[0] = 5;
  EXPECT_EQ(x.data<float>()[0], 1);
}

TEST(Tensor, WrongNumberOfValues_IsAnError) {
  const Error error = error_of([] { Tensor::of<float>({2, 2}, {1, 2, 3}); });
  EXPECT_EQ(error.category(), Category::shape_mismatch);
  EXPECT_EQ(error.message(), "found 3 values, expected 4");
  EXPECT_EQ(
      error_of([] { Tensor::from_doubles(DType::f32, {2}, std::vector<double>{1}); }).category(),
      Category::shape_mismatch);
}

TEST(Tensor, NegativeOrHugeSize_IsAnError) {
  EXPECT_EQ(error_of([] { Tensor(DType::f32, {-1}); }).category(), Category::invalid_argument);
  EXPECT_EQ(error_of([] {
              Tensor(DType::f64, {1LL << 40, 1LL << 22});
            }).category(),
            Category::invalid_argument);
}

TEST(Tensor, MoreThanThereIsMemoryFor_IsAnError) {
  // More than a vector can be asked for, and more than the machine has. The address sanitizer ends
  // the program at the second one, before it can throw.
  std::vector<std::pair<DType, std::int64_t>> sizes = {{DType::i8, INT64_MAX}};
  if (!testing::kSanitized) sizes.emplace_back(DType::f32, 1LL << 60);
  for (const auto& [dtype, size] : sizes) {
    const Error error = error_of([&, dtype = dtype, size = size] { Tensor(dtype, {size}); });
    EXPECT_EQ(error.category(), Category::invalid_argument);
    EXPECT_EQ(error.message(), "found a tensor of " + std::to_string(size * byte_size(dtype)) +
                                   " bytes, more than there is memory");
  }
}

TEST(Tensor, ElementOutOfRange_IsAnError) {
  const Tensor x(DType::f32, {2});
  for (const std::int64_t index : {-1, 2}) {
    EXPECT_EQ(error_of([&] { x.element(index); }).category(), Category::invalid_argument);
  }
}

TEST(Tensor, MovedFrom_IsAsADefaultOne) {
  Tensor x = Tensor::of<double>({2}, {1, 2});
  const Tensor y = std::move(x);
  EXPECT_EQ(y, Tensor::of<double>({2}, {1, 2}));
  EXPECT_EQ(x, Tensor());  // NOLINT: this is what is tested
  EXPECT_TRUE(x.to_doubles().empty());
  x = Tensor::scalar(3.0);
  Tensor z;
  z = std::move(x);
  EXPECT_EQ(z, Tensor::scalar(3.0));
  EXPECT_EQ(x, Tensor());  // NOLINT
}

TEST(Tensor, FromDoubles_RoundsOnceToTheDtype) {
  // 1 + 2^-8 + 2^-40 lies above the midpoint of two bf16 values; through f32 it would be on it.
  const std::vector<double> values = {1 + 0x1p-8 + 0x1p-40};
  const Tensor x = Tensor::from_doubles(DType::bf16, {1}, values);
  EXPECT_EQ(x.to_doubles()[0], 1.0078125);
  EXPECT_EQ(
      error_of([] { Tensor::from_doubles(DType::u8, {1}, std::vector<double>{256}); }).category(),
      Category::invalid_literal);
}

TEST(Tensor, FilledAndElement_AreInverse) {
  const Literal value = Literal::from_double(DType::f16, -2.5);
  const Tensor x = Tensor::filled(value, {2, 2});
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(x.element(i), value);
  EXPECT_EQ(x.to_doubles(), std::vector<double>(4, -2.5));
}

}  // namespace
}  // namespace mulgrad
