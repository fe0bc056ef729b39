#include "core/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/custom.h"
#include "core/expr.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::near;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kInf32 = std::numeric_limits<float>::infinity();
constexpr float kNan32 = std::numeric_limits<float>::quiet_NaN();

// Runs an expression of one tensor.
template <class F>
Tensor run(F expression, const Tensor& x) {
  Builder builder;
  const Var input(builder, builder.input("x", x.type()));
  builder.output("y", Var(expression(input)).id());
  return interpret(builder.finish(), std::vector<Tensor>{x})[0];
}

template <class F>
Tensor run(F expression, const Tensor& x, const Tensor& y) {
  Builder builder;
  const Var a(builder, builder.input("x", x.type()));
  const Var b(builder, builder.input("y", y.type()));
  builder.output("z", Var(expression(a, b)).id());
  return interpret(builder.finish(), std::vector<Tensor>{x, y})[0];
}

template <class T>
Tensor row(std::initializer_list<T> values) {
  return Tensor::of<T>({std::ssize(values)}, values);
}

TEST(Interpreter, Program_ReturnsOutputsAndCapturesInOrder) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {2, 3}}));
  const Var w(b, b.input("w", {DType::f32, {3, 2}}));
  const Var y = matmul(x, w);  // [[4, 5], [10, 11]]
  b.output("loss", mean(y * y).id());
  b.output("c0", y.id(), OutputRole::capture);
  b.output("same", x.id());
  const std::vector<Tensor> in = {Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                                  Tensor::of<float>({3, 2}, {1, 0, 0, 1, 1, 1})};
  EXPECT_THAT(interpret(b.finish(), in),
              ElementsAre(Tensor::scalar((16 + 25 + 100 + 121) / 4.0f),
                          Tensor::of<float>({2, 2}, {4, 5, 10, 11}), in[0]));
}

TEST(Interpreter, Inputs_AreChecked) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {2}}));
  const Var y(b, b.input("y", {DType::f32, {2}}));
  b.output("z", (x + y).id());
  const Program program = b.finish();
  const Tensor good = row<float>({1, 2});
  const auto error = [&](std::vector<Tensor> inputs) {
    return error_of([&] { interpret(program, inputs); });
  };
  EXPECT_EQ(error({good}).category(), Category::invalid_argument);
  EXPECT_EQ(error({good}).message(), "found 1 inputs, expected 2");
  EXPECT_EQ(error({good, row<double>({1, 2})}).category(), Category::dtype_mismatch);
  EXPECT_EQ(error({good, row<double>({1, 2})}).node(), "%arg1 \"y\"");
  EXPECT_EQ(error({row<float>({1}), good}).category(), Category::shape_mismatch);
  EXPECT_EQ(error({row<float>({1}), good}).node(), "%arg0 \"x\"");
}

TEST(Interpreter, UnboundProgram_IsAnError) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {Dim::symbol("B")}}));
  b.output("y", (-x).id());
  const Program program = b.finish();
  EXPECT_EQ(error_of([&] { interpret(program, std::vector<Tensor>{row<float>({1})}); }).category(),
            Category::unresolved_symbolic_shape);
  EXPECT_EQ(interpret(bind(program, {{"B", 1}}), std::vector<Tensor>{row<float>({1})})[0],
            row<float>({-1}));
}

TEST(Interpreter, Observer_SeesEveryNodeInOrderAndNamesTheFirstNan) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {2}}));
  b.output("y", (exp(log(x - 1)) * 2).id());
  std::vector<ValueId> seen;
  std::vector<ValueId> with_nan;
  interpret(b.finish(), std::vector<Tensor>{row<float>({0, 3})},
            [&](ValueId id, const Tensor& value) {
              seen.push_back(id);
              if (value.element(0).is_nan()) with_nan.push_back(id);
            });
  EXPECT_THAT(seen,
              ElementsAre(ValueId::node(0), ValueId::node(1), ValueId::node(2), ValueId::node(3)));
  EXPECT_EQ(with_nan.front(), ValueId::node(1));
}

class Broken final : public CustomDefinition {
 public:
  Broken() : CustomDefinition("test.broken") {}
  Type infer(const std::string&, std::span<const Type> x) const override { return x[0]; }
  Tensor evaluate(const std::string& attributes, std::span<const Tensor>) const override {
    if (attributes == "throw") throw Error(Category::invalid_data, "no such thing");
    return Tensor(DType::f32, {7});
  }
};

TEST(Interpreter, CustomOpThatFails_NamesItsNode) {
  const auto error = [](std::string attributes) {
    Builder b;
    const ValueId x = b.input("x", {DType::f32, {2}});
    b.output("y", b.add(Custom{std::make_shared<const Broken>(), attributes}, {x}));
    const Program program = b.finish();
    return error_of([&] { interpret(program, std::vector<Tensor>{row<float>({1, 2})}); });
  };
  EXPECT_EQ(error("").category(), Category::handler_contract_violation);
  EXPECT_THAT(error("").message(), HasSubstr("tensor<7xf32>, expected tensor<2xf32>"));
  EXPECT_EQ(error("throw").category(), Category::invalid_data);
  EXPECT_EQ(error("throw").node(), "%0 stablehlo.custom_call");
}

TEST(EvaluateNode, Literal_IsTakenFromTheNode) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {2}}));
  b.output("y", (10 - x).id());
  const Program program = b.finish();
  const Tensor value = row<float>({1, 2});
  const std::array<const Tensor*, 2> values = {nullptr, &value};
  EXPECT_EQ(evaluate_node(program.nodes()[0], values), row<float>({9, 8}));
}

// NaN, Inf, signed zero.

TEST(Numerics, TimesZeroOverItselfMinusItself_FollowIeee) {
  const Tensor x = row<double>({kInf, kNan, -kInf, 2, -0.0});
  EXPECT_TRUE(near(run([](Var v) { return v * 0; }, x), row<double>({kNan, kNan, kNan, 0, -0.0})));
  EXPECT_TRUE(near(run([](Var v) { return v / v; }, x), row<double>({kNan, kNan, kNan, 1, kNan})));
  EXPECT_TRUE(near(run([](Var v) { return v - v; }, x), row<double>({kNan, kNan, kNan, 0, 0})));
  EXPECT_TRUE(near(run([](Var v) { return (v - v) / (v - v); }, x),
                   row<double>({kNan, kNan, kNan, kNan, kNan})));
}

TEST(Numerics, MinusNegativeZero_IsPositiveZero) {
  EXPECT_EQ(run([](Var x) { return x - (-0.0); }, Tensor::scalar(-0.0)), Tensor::scalar(0.0));
}

TEST(Numerics, SquareOfTheLargest_IsInfinite) {
  EXPECT_EQ(run([](Var x) { return sqrt(abs(x * x)); }, Tensor::scalar(3.4028235e38f)),
            Tensor::scalar(kInf32));
}

TEST(Numerics, ZeroTimesNan_IsNotDropped) {
  const auto sum_with = [](Var loss, Var nan) { return loss + 0 * nan; };
  EXPECT_TRUE(
      near(run(sum_with, Tensor::scalar(1.0f), Tensor::scalar(kNan32)), Tensor::scalar(kNan32)));
}

TEST(Numerics, MaximumWithNan_IsNan) {
  const auto larger = [](Var a, Var b) { return maximum(a, b); };
  EXPECT_TRUE(near(run(larger, row<float>({kNan32, 1}), row<float>({1, kNan32})),
                   row<float>({kNan32, kNan32})));
  EXPECT_EQ(run(larger, row<float>({-0.0f, 0}), row<float>({0, -0.0f})), row<float>({0, 0}));
}

TEST(Numerics, Softmax_OfExtremes) {
  const auto softmax = [](Var x) {
    const Var e = exp(x - reduce(Reduction::max, x, {1}, KeepDims::yes));
    return e / sum(e, {1}, KeepDims::yes);
  };
  const Tensor x = Tensor::of<double>({4, 2}, {1000, 0, -1000, -1000, kInf, 0, -kInf, -kInf});
  EXPECT_TRUE(
      near(run(softmax, x), Tensor::of<double>({4, 2}, {1, 0, .5, .5, kNan, kNan, kNan, kNan})));
  const Tensor lowest = Tensor::filled(Literal::lowest_finite(DType::f32), {1, 4});
  EXPECT_EQ(run(softmax, lowest), Tensor::filled(Literal::from_double(DType::f32, .25), {1, 4}));
}

TEST(Numerics, Logistic_IsStableAtBothEnds) {
  EXPECT_EQ(run([](Var x) { return logistic(x); }, row<float>({-200, 200, -kInf32, kInf32})),
            row<float>({0, 1, 0, 1}));
  const Tensor tail = run([](Var x) { return logistic(x); }, row<double>({-700, 0}));
  EXPECT_DOUBLE_EQ(tail.data<double>()[0], std::exp(-700.0));
  EXPECT_EQ(tail.data<double>()[1], .5);
}

// Casts.

TEST(Casts, NarrowAndBack_RoundsOnce) {
  const auto through_f16 = [](Var x) { return convert(convert(x, DType::f16), DType::f32); };
  EXPECT_EQ(run(through_f16, row<float>({1e-12f, 123456.7f, -2.643845f})),
            row<float>({0, kInf32, -2.64453125f}));
}

TEST(Casts, TwoNarrowings_AreNotOne) {
  const Tensor half = Tensor::scalar(1 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(run([](Var x) { return convert(x, DType::f16); }, half).element(0).bits, 0x3C01u);
  EXPECT_EQ(
      run([](Var x) { return convert(convert(x, DType::f32), DType::f16); }, half).element(0).bits,
      0x3C00u);
  const Tensor brain = Tensor::scalar(1 + 0x1p-8 + 0x1p-40);
  EXPECT_EQ(run([](Var x) { return convert(x, DType::bf16); }, brain).to_doubles()[0], 1.0078125);
  EXPECT_EQ(run([](Var x) { return convert(convert(x, DType::f32), DType::bf16); }, brain)
                .to_doubles()[0],
            1.0);
}

TEST(Casts, ChainsToI1_LoseWhatTheMiddleLoses) {
  EXPECT_EQ(
      run([](Var x) { return convert(convert(x, DType::f32), DType::i1); }, Tensor::scalar(1e-300)),
      Tensor::scalar(false));
  EXPECT_EQ(run([](Var x) { return convert(convert(x, DType::i32), DType::i1); },
                Tensor::scalar(std::int64_t{1} << 32)),
            Tensor::scalar(false));
  EXPECT_EQ(run([](Var x) { return convert(x, DType::i1); }, row<float>({kNan32, 0, -0.0f, .1f})),
            row<bool>({true, false, false, true}));
}

TEST(Casts, FloatToInteger_Truncates) {
  const auto shifted = [](Var x) { return convert(convert(x + 64, DType::i64), DType::f32) - 64; };
  EXPECT_EQ(run(shifted, row<float>({.3f, 1.7f, -.4f, -1.6f})), row<float>({0, 1, -1, -2}));
}

TEST(Casts, LowestF32_BecomesInfiniteInSixteenBits) {
  const Tensor lowest = Tensor::filled(Literal::lowest_finite(DType::f32), {});
  for (const DType dtype : {DType::bf16, DType::f16}) {
    EXPECT_EQ(run([&](Var x) { return convert(x, dtype); }, lowest).element(0),
              Literal::infinity(dtype, true));
  }
}

TEST(Casts, IntegersThroughFloats_DifferFromDirect) {
  const auto through = [](DType middle, DType last) {
    return [=](Var x) { return convert(convert(x, middle), last); };
  };
  const Tensor minus_one = Tensor::scalar<std::int8_t>(-1);
  EXPECT_EQ(run(through(DType::f32, DType::u8), minus_one), Tensor::scalar<std::uint8_t>(0));
  EXPECT_EQ(run([](Var x) { return convert(x, DType::u8); }, minus_one),
            Tensor::scalar<std::uint8_t>(255));
  const Tensor big = Tensor::scalar<std::int16_t>(300);
  EXPECT_EQ(run(through(DType::f32, DType::i8), big), Tensor::scalar<std::int8_t>(127));
  EXPECT_EQ(run([](Var x) { return convert(x, DType::i8); }, big), Tensor::scalar<std::int8_t>(44));
}

// Every 16-bit value, its midpoint with the next one, and the doubles beside the midpoint. The
// oracle: the midpoint of neighbours decides, and an even mantissa wins on it.
TEST(Casts, F64ToSixteenBits_RoundsToNearestEvenEverywhere) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto value_of = [&](std::uint64_t bits) { return Literal{dtype, bits}.as_double(); };
    const std::uint64_t infinity = Literal::infinity(dtype).bits;
    std::vector<double> inputs;
    std::vector<std::uint64_t> expected;
    for (std::uint64_t bits = 0; bits < infinity; ++bits) {
      const double x = value_of(bits);
      // Beyond the largest finite value stands the one that a wider exponent would give.
      const double next = bits + 1 < infinity ? value_of(bits + 1) : x + (x - value_of(bits - 1));
      const double middle = x + (next - x) / 2;  // exact
      const std::uint64_t even = bits % 2 == 0 ? bits : bits + 1;
      inputs.insert(inputs.end(),
                    {x, std::nextafter(middle, 0), middle, std::nextafter(middle, next)});
      expected.insert(expected.end(), {bits, bits, even, bits + 1});
    }
    const std::uint64_t sign = Literal::from_double(dtype, -0.0).bits;
    for (const bool negative : {false, true}) {
      std::vector<double> signed_inputs = inputs;
      if (negative) {
        for (double& x : signed_inputs) x = -x;
      }
      const auto count = std::ssize(signed_inputs);
      const Tensor got =
          run([&](Var x) { return convert(x, dtype); }, Tensor::of<double>({count}, signed_inputs));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(got.element(i).bits, expected[at] | (negative ? sign : 0)) << signed_inputs[at];
      }
    }
  }
}

TEST(Casts, SixteenBitsToF64AndBack_KeepEveryValue) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Tensor all(dtype, {1 << 16});
    const std::span<std::byte> bytes = all.bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i % 2 == 0 ? i / 2 % 256 : i / 2 / 256);
    }
    EXPECT_TRUE(near(run([&](Var x) { return convert(convert(x, DType::f64), dtype); }, all), all));
    EXPECT_TRUE(near(run([&](Var x) { return convert(convert(x, DType::f32), dtype); }, all), all));
  }
}

// Reductions and products.

TEST(Reductions, OverNothing_GiveTheIdentity) {
  const Tensor nothing(DType::f32, {0, 3});
  const auto reduced = [&](Reduction kind) {
    return run([&](Var x) { return reduce(kind, x, {0}); }, nothing);
  };
  EXPECT_EQ(reduced(Reduction::sum), row<float>({0, 0, 0}));
  EXPECT_EQ(reduced(Reduction::product), row<float>({1, 1, 1}));
  EXPECT_EQ(reduced(Reduction::max), row<float>({-kInf32, -kInf32, -kInf32}));
  EXPECT_EQ(reduced(Reduction::min), row<float>({kInf32, kInf32, kInf32}));
  EXPECT_EQ(run([](Var x) { return reduce(Reduction::max, x, {0}); }, Tensor(DType::i8, {0})),
            Tensor::scalar<std::int8_t>(-128));
  EXPECT_EQ(run([](Var x) { return reduce(Reduction::and_, x, {0}); }, Tensor(DType::i1, {0})),
            Tensor::scalar(true));
  EXPECT_TRUE(
      near(run([](Var x) { return mean(x, {0}); }, nothing), row<float>({kNan32, kNan32, kNan32})));
}

TEST(Reductions, MeanOverNoAxis_IsTheIdentity) {
  const Tensor x = row<double>({1, -0.0, kNan, kInf, 5e-324});
  EXPECT_EQ(run([](Var v) { return mean(v, {}); }, x), x);
}

TEST(Reductions, MaxWithNan_IsNan) {
  EXPECT_TRUE(near(run([](Var x) { return reduce(Reduction::max, x, {0}); },
                       row<double>({7, kNan, -2.5, 11, .25})),
                   Tensor::scalar(kNan)));
}

TEST(Reductions, ScaleOverTwoAxes_AppliesOnce) {
  EXPECT_EQ(run(
                [](Var x) {
                  return sum(x * 3, {0, 1});
                },
                Tensor::of<float>({2, 2}, {1, 2, 3, 4})),
            Tensor::scalar(30.0f));
}

TEST(Reductions, SumOfF32_AccumulatesInF64) {
  std::vector<float> values(1 << 16, 0.1f);
  values[0] = 1e8f;
  const auto count = std::ssize(values);
  const double expected = 1e8 + static_cast<double>(0.1f) * static_cast<double>(count - 1);
  EXPECT_EQ(run([](Var x) { return sum(x); }, Tensor::of<float>({count}, values)),
            Tensor::scalar(static_cast<float>(expected)));
}

TEST(Reductions, MeanOfF16_DividesByTheRoundedCount) {
  // 70000 is no f16: it rounds to infinity, and 1 / infinity is 0.
  Tensor x = Tensor::filled(Literal::zero(DType::f16), {70000});
  x.data<Float16>()[0] = Float16(1.0);
  EXPECT_EQ(run([](Var v) { return mean(v); }, x), Tensor::scalar(Float16(0.0)));
}

TEST(Reductions, MeanWithIntermediateOverflow_IsInfinite) {
  EXPECT_EQ(run([](Var x) { return mean(x); }, row<float>({3e38f, 3e38f})), Tensor::scalar(kInf32));
}

TEST(Products, NaNOfTheOtherOperand_Survives) {
  const auto product = [](Var a, Var b) { return matmul(a, b); };
  EXPECT_TRUE(near(run(product, Tensor::of<float>({1, 2}, {0, 1}),
                       Tensor::of<float>({2, 2}, {kInf32, 1, 2, kNan32})),
                   Tensor::of<float>({1, 2}, {kNan32, kNan32})));
  EXPECT_EQ(run(product, Tensor(DType::f32, {2, 0}), Tensor(DType::f32, {0, 2})),
            Tensor(DType::f32, {2, 2}));
  EXPECT_EQ(run(product, Tensor::of<float>({1, 1}, {1}), Tensor::of<float>({1, 1}, {1024.5f})),
            Tensor::of<float>({1, 1}, {1024.5f}));
}

TEST(Broadcast, ByProductWithOnes_KeepsValuesButNotTheSignOfZero) {
  const Tensor x = Tensor::of<double>({4, 1}, {-0.0, 1, -0.0, kInf});
  const Tensor ones = Tensor::of<double>({1, 2}, {1, 1});
  EXPECT_TRUE(near(run([](Var a, Var b) { return matmul(a, b); }, x, ones),
                   Tensor::of<double>({4, 2}, {0, 0, 1, 1, 0, 0, kInf, kInf}),
                   {.zero_sign = testing::ZeroSign::free}));
}

// Integers: every pair of i8 and u8 against 32-bit arithmetic.

template <class T>
std::pair<Tensor, Tensor> all_pairs() {
  std::vector<T> a;
  std::vector<T> b;
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < 256; ++j) {
      a.push_back(static_cast<T>(i));
      b.push_back(static_cast<T>(j));
    }
  }
  return {Tensor::of<T>({1 << 16}, a), Tensor::of<T>({1 << 16}, b)};
}

template <class T, class F, class G>
void expect_pairs(F expression, G expected) {
  const auto [a, b] = all_pairs<T>();
  const Tensor got = run(expression, a, b);
  for (std::size_t i = 0; i < 1 << 16; ++i) {
    const int x = a.template data<T>()[i];
    const int y = b.template data<T>()[i];
    ASSERT_EQ(got.data<T>()[i], static_cast<T>(expected(x, y))) << x << ", " << y;
  }
}

int quotient(int a, int b) {
  return b == 0 ? -1 : a / b;  // -128 / -1 is 128 in int, and wraps
}

int power(int base, int exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  unsigned result = 1;
  for (int i = 0; i < exponent; ++i) result *= static_cast<unsigned>(base);
  return static_cast<int>(result);
}

template <class T>
void expect_integer_semantics() {
  expect_pairs<T>([](Var a, Var b) { return a + b; }, [](int a, int b) { return a + b; });
  expect_pairs<T>([](Var a, Var b) { return a - b; }, [](int a, int b) { return a - b; });
  expect_pairs<T>([](Var a, Var b) { return a * b; }, [](int a, int b) { return a * b; });
  expect_pairs<T>([](Var a, Var b) { return a / b; }, quotient);
  expect_pairs<T>([](Var a, Var b) { return pow(a, b); }, power);
  expect_pairs<T>([](Var a, Var b) { return maximum(a, b); },
                  [](int a, int b) { return std::max(a, b); });
}

TEST(Integers, SignedArithmetic_Wraps) { expect_integer_semantics<std::int8_t>(); }
TEST(Integers, UnsignedArithmetic_Wraps) { expect_integer_semantics<std::uint8_t>(); }

TEST(Integers, ExtremesOf64Bits_HaveNoUndefinedBehaviour) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  const auto both = [](auto f, std::int64_t a, std::int64_t b) {
    return run(f, Tensor::scalar(a), Tensor::scalar(b)).element(0).as_int();
  };
  EXPECT_EQ(both([](Var a, Var b) { return a / b; }, kMin, -1), kMin);
  EXPECT_EQ(both([](Var a, Var b) { return a / b; }, 5, 0), -1);
  EXPECT_EQ(both([](Var a, Var b) { return a - b; }, kMin, 1), -(kMin + 1));
  EXPECT_EQ(both([](Var a, Var b) { return a * b; }, kMin, -1), kMin);
  EXPECT_EQ(run([](Var x) { return abs(x); }, Tensor::scalar(kMin)), Tensor::scalar(kMin));
  EXPECT_EQ(run([](Var x) { return -x; }, Tensor::scalar(kMin)), Tensor::scalar(kMin));
  EXPECT_EQ(run([](Var x) { return convert(x, DType::i64); }, row<double>({1e30, -1e30, kNan})),
            row<std::int64_t>({std::numeric_limits<std::int64_t>::max(), kMin, 0}));
  EXPECT_EQ(run([](Var x) { return convert(x, DType::u64); }, row<double>({1e30, -1})),
            row<std::uint64_t>({std::numeric_limits<std::uint64_t>::max(), 0}));
}

}  // namespace
}  // namespace mulgrad
