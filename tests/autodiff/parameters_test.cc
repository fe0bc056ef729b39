#include "autodiff/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/random.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using ::testing::Each;
using testing::throws;

TEST(Initializer, Constants_FillTheTensor) {
  EXPECT_EQ(Initializer::zeros().draw({DType::f32, {2, 3}}, 1, 2), Tensor(DType::f32, {2, 3}));
  EXPECT_EQ(Initializer::constant(-0.5).draw({DType::f64, {2}}, 1, 2),
            Tensor::of<double>({2}, {-0.5, -0.5}));
  EXPECT_EQ(Initializer::constant(3).draw({DType::i32, {1}}, 1, 2),
            Tensor::of<std::int32_t>({1}, {3}));
}

TEST(Initializer, DrawnElements_FollowTheirStreamInRowMajorOrder) {
  RandomStream uniforms(7, 3);
  const Tensor uniform = Initializer::uniform(0.25).draw({DType::f64, {2, 3}}, 7, 3);
  for (const double value : uniform.data<double>()) {
    EXPECT_EQ(value, 0.25 * (2 * uniforms.uniform_f64() - 1));
  }
  RandomStream normals(7, 3);
  const Tensor normal = Initializer::normal(2).draw({DType::f64, {2, 3}}, 7, 3);
  for (const double value : normal.data<double>()) EXPECT_EQ(value, 2 * normals.normal());
}

TEST(Initializer, EveryDtype_StartsAtTheSameNumbersRoundedOnce) {
  const Initializer start = Initializer::uniform(1);
  const Tensor wide = start.draw({DType::f64, {5}}, 1, 0);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(start.draw({dtype, {5}}, 1, 0),
              Tensor::from_doubles(dtype, {5}, wide.data<double>()));
  }
}

TEST(Initializer, Helpers_HaveTheirPublishedSpread) {
  constexpr std::int64_t kDraws = 40000;
  const auto mean_square = [](const Initializer& start) {
    double sum = 0;
    for (const double x : start.draw({DType::f64, {kDraws}}, 1, 0).to_doubles()) sum += x * x;
    return sum / kDraws;
  };
  EXPECT_NEAR(mean_square(Initializer::he_normal(50)), 2.0 / 50, 0.002);
  EXPECT_NEAR(mean_square(Initializer::xavier_uniform(30, 20)), 2.0 / 50, 0.002);
  const Tensor xavier = Initializer::xavier_uniform(30, 20).draw({DType::f64, {kDraws}}, 1, 0);
  EXPECT_THAT(xavier.to_doubles(), Each(::testing::AllOf(::testing::Ge(-std::sqrt(6.0 / 50)),
                                                         ::testing::Le(std::sqrt(6.0 / 50)))));
}

TEST(Initialize, Parameters_EachHaveTheirOwnStream) {
  const Initializer start = Initializer::uniform(1);
  const Parameter p{"p", {DType::f64, {4}}, start};
  const std::vector<Parameter> two = {p, p};
  const std::vector<Tensor> tensors = initialize(two, 9);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0], p.initializer.draw(p.type, 9, 0));
  EXPECT_EQ(tensors[1], p.initializer.draw(p.type, 9, 1));
  EXPECT_FALSE(tensors[0] == tensors[1]);
  EXPECT_EQ(initialize(two, 9), tensors);
  EXPECT_FALSE(initialize(two, 10)[0] == tensors[0]);
}

TEST(Initializer, ArgumentOutOfItsDomain_Throws) {
  EXPECT_THAT([] { Initializer::uniform(-1); },
              throws(Category::invalid_argument, "expected a finite number >= 0"));
  EXPECT_THAT([] { Initializer::normal(std::numeric_limits<double>::quiet_NaN()); },
              throws(Category::invalid_argument, "expected a finite number >= 0"));
  EXPECT_THAT([] { Initializer::he_normal(0); },
              throws(Category::invalid_argument, "found a fan of 0"));
  EXPECT_THAT([] { Initializer::xavier_uniform(3, -2); },
              throws(Category::invalid_argument, "found a fan of -2"));
}

TEST(Initializer, TypeThatCannotBeDrawn_Throws) {
  EXPECT_THAT(
      [] {
        Initializer::uniform(1).draw({DType::f32, {Dim::symbol("B")}}, 0, 0);
      },
      throws(Category::unresolved_symbolic_shape, "B"));
  EXPECT_THAT(
      [] {
        Initializer::normal(1).draw({DType::i32, {2}}, 0, 0);
      },
      throws(Category::dtype_mismatch, "found dtype i32"));
}

}  // namespace
}  // namespace mulgrad
