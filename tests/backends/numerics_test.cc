// Inputs with right values known by hand, on every path that computes them: the interpreter and the
// CPU backend, each on the program itself and on what the default pipelines of the matrix targets
// make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "autodiff/derive.h"
#include "autodiff/losses.h"
#include "autodiff/random.h"
#include "autodiff/tape.h"
#include "backends/cpu/session.h"
#include "core/interpreter.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/pipeline.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using testing::near;
using testing::Tolerance;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr float kInf32 = std::numeric_limits<float>::infinity();
constexpr float kNaN32 = std::numeric_limits<float>::quiet_NaN();

using Inputs = std::vector<Var>;
using Tensors = std::vector<Tensor>;

// Which targets can say the row: all that multiply matrices, or those of them with slices.
const std::vector<Target>& every() {
  static const std::vector<Target> kTargets = {Target::matmul_only(), Target::matmul_move(),
                                               Target::matmul_batched()};
  return kTargets;
}
const std::vector<Target>& with_slices() {
  static const std::vector<Target> kTargets = {Target::matmul_move()};
  return kTargets;
}

// Where i1 would cross from the forward program to the derivative, or 16-bit floats are computed.
const std::vector<Target>& none() {
  static const std::vector<Target> kTargets;
  return kTargets;
}

struct Row {
  std::string name;
  Tensors inputs;
  std::function<Var(const Inputs&)> expression;
  Tensors expected;  // the value, or a gradient per float input for a seed of ones
  const std::vector<Target>& targets = every();
  Tolerance tolerance = {};
};

Program traced(const Row& row) {
  Tape tape;
  Inputs x;
  for (const Tensor& input : row.inputs) {
    x.push_back(tape.input("x" + std::to_string(x.size()), input.type()));
  }
  tape.output("y", row.expression(x));
  return tape.finish();
}

Program rewritten(const Program& program, const Target& target, Slot slot) {
  const Program result = run_passes(program, slot, default_pipeline(target, slot)).program;
  EXPECT_EQ(only_target_ops(target).violation(result), std::nullopt) << print(result);
  return result;
}

// Runs one program on both executors; the first `skip` outputs are not the row's.
void expect_values(const Program& program, const Tensors& inputs, const Row& row, std::size_t skip,
                   Tolerance tolerance) {
  const Tensors interpreted = interpret(program, inputs);
  const Tensors computed = CpuProgram(program).run(inputs);
  ASSERT_EQ(interpreted.size(), skip + row.expected.size());
  for (std::size_t i = 0; i < row.expected.size(); ++i) {
    EXPECT_TRUE(near(interpreted[skip + i], row.expected[i], tolerance)) << "interpreter, " << i;
    EXPECT_TRUE(near(computed[skip + i], row.expected[i], tolerance)) << "CPU, " << i;
  }
}

// What the pipelines may change in a row: the sign of a zero, and a rounding.
Tolerance of_pipelines(const Row& row) {
  Tolerance tolerance = row.tolerance;
  tolerance.zero_sign = testing::ZeroSign::free;
  tolerance.relative = std::max(tolerance.relative, 0x1p-50);
  return tolerance;
}

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Program program = traced(row);
    expect_values(program, row.inputs, row, 0, row.tolerance);
    for (const Target& target : row.targets) {
      SCOPED_TRACE(target.name());
      expect_values(rewritten(program, target, Slot::forward), row.inputs, row, 0,
                    of_pipelines(row));
    }
  }
}

void expect_gradients(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Program program = traced(row);
    std::vector<std::string> wrt;
    for (const Input& input : program.inputs()) {
      if (is_float(input.type.dtype)) wrt.push_back(input.name);
    }
    const Derivative derived = derive(program, {"y"}, wrt);
    Tensors inputs = row.inputs;
    const Type seed = program.type(program.outputs()[0].value);
    inputs.push_back(Tensor::filled(Literal::one(seed.dtype), seed.shape.sizes()));
    expect_values(join(derived), inputs, row, 1, row.tolerance);
    for (const Target& target : row.targets) {
      SCOPED_TRACE(target.name());
      const Derivative lowered = {rewritten(derived.forward, target, Slot::forward),
                                  rewritten(derived.derivative, target, Slot::derivative)};
      expect_values(join(lowered), inputs, row, 1, of_pipelines(row));
    }
  }
}

Tensor tensor(std::vector<std::int64_t> sizes, const std::vector<double>& values) {
  return Tensor::of<double>(std::move(sizes), values);
}

std::vector<double> counted(std::int64_t n, double first) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), first);
  return values;
}

Var first_of(Var x) { return slice(x, {0}, {1}); }

TEST(NumericsOnEveryPath, GradientsOfSumsMeansBroadcasts_AreRight) {
  std::vector<double> both_terms = counted(12, 1);
  for (std::size_t i = 0; i < 12; ++i) {
    both_terms[i] = std::vector<double>{0.25, 2.5, 25}[i % 3] + 2 * both_terms[i];
  }
  expect_gradients({
      {"mean of squares",
       {tensor({5}, {1, 1, 1, 1, 1})},
       [](const Inputs& x) { return mean(x[0] * x[0]); },
       {tensor({5}, {0.4, 0.4, 0.4, 0.4, 0.4})}},
      {"x minus its mean",
       {tensor({4}, {1, 2, 3, 4})},
       [](const Inputs& x) { return x[0] - mean(x[0]); },
       {tensor({4}, {0, 0, 0, 0})}},
      {"a row added to a matrix",
       {tensor({3, 4}, counted(12, 1)), tensor({1, 4}, counted(4, 1)),
        tensor({3, 4}, counted(12, 100))},
       [](const Inputs& x) {
         const Var r = x[2] - (x[0] + x[1]);
         return sum(r * r);
       },
       {tensor({3, 4}, {-196, -194, -192, -190, -196, -194, -192, -190, -196, -194, -192, -190}),
        tensor({1, 4}, {-588, -582, -576, -570}),
        tensor({3, 4}, {196, 194, 192, 190, 196, 194, 192, 190, 196, 194, 192, 190})}},
      {"a mean times tens",
       {tensor({2, 3}, {1, 1, 1, 1, 1, 1})},
       [](const Inputs& x) {
         const Var tens = fill(x[0].builder(), Literal::from_int(DType::f64, 10), {3, 1});
         return matmul(mean(x[0], {0}, KeepDims::yes), tens);
       },
       {tensor({2, 3}, {5, 5, 5, 5, 5, 5})}},
      {"a column added to an empty matrix",
       {tensor({4, 0}, {}), tensor({4}, {1, 2, 3, 4})},
       [](const Inputs& x) {
         return sum(x[0] + reshape(x[1], {4, 1}));
       },
       {tensor({4, 0}, {}), tensor({4}, {0, 0, 0, 0})}},
      {"a mean over no axes",
       {tensor({3}, {1, 2, 3})},
       [](const Inputs& x) { return mean(x[0], {}); },
       {tensor({3}, {1, 1, 1})}},
      {"a second term beside a mean",
       {tensor({4, 3}, counted(12, 1)), tensor({3}, {1, 10, 100})},
       [](const Inputs& x) {
         const Var weighted = sum(mean(x[0], {0}) * x[1]);
         return weighted + sum(x[0] * x[0]);
       },
       {tensor({4, 3}, both_terms), tensor({3}, {5.5, 6.5, 7.5})}},
      {"ties of a maximum",
       {tensor({4}, {1, 2, 2, 2})},
       [](const Inputs& x) { return reduce(Reduction::max, x[0], {0}); },
       {tensor({4}, {0, 1.0 / 3, 1.0 / 3, 1.0 / 3})}},
      {"ties of the maxima of columns",
       {tensor({4, 3}, std::vector<double>(12, 1))},
       [](const Inputs& x) { return reduce(Reduction::max, x[0], {0}); },
       {tensor({4, 3}, std::vector<double>(12, 0.25))}},
      {"one quotient of three",
       {tensor({3}, {1, 1, 1}), tensor({3}, {1, 0, 1})},
       [](const Inputs& x) { return first_of(x[0] / x[1]); },
       {tensor({3}, {1, kNaN, 0}), tensor({3}, {-1, kNaN, -0.0})},
       with_slices()},
      {"a masked result",
       {tensor({3}, {1, 1, 1}), tensor({3}, {1, 0, 1})},
       [](const Inputs& x) {
         const Var quotient = x[0] / x[1];
         return first_of(select(compare(Comparison::NE, x[1], 0), quotient, 0));
       },
       {tensor({3}, {1, kNaN, 0}), tensor({3}, {-1, kNaN, -0.0})},
       none()},
      {"a masked denominator",
       {tensor({3}, {1, 1, 1}), tensor({3}, {1, 0, 1})},
       [](const Inputs& x) {
         return first_of(x[0] / select(compare(Comparison::NE, x[1], 0), x[1], 1));
       },
       {tensor({3}, {1, 0, 0}), tensor({3}, {-1, 0, -0.0})},
       none()},
      {"a product with a zero",
       {tensor({3}, {0, 2, 3})},
       [](const Inputs& x) { return reduce(Reduction::product, x[0], {0}); },
       {tensor({3}, {6, 0, 0})},
       with_slices()},
      {"a product with two zeros",
       {tensor({3}, {0, 0, 3})},
       [](const Inputs& x) { return reduce(Reduction::product, x[0], {0}); },
       {tensor({3}, {0, 0, 0})},
       with_slices()},
      {"a norm at 0",
       {tensor({2}, {0, 0})},
       [](const Inputs& x) { return sqrt(sum(x[0] * x[0])); },
       {tensor({2}, {kNaN, kNaN})}},
      {"powers at their edges",
       {tensor({2}, {-2, 0}), tensor({2}, {2, 2})},
       [](const Inputs& x) { return pow(x[0], x[1]); },
       {tensor({2}, {-4, 0}), tensor({2}, {kNaN, 0})}},
  });
}

TEST(NumericsOnEveryPath, EmptyReductions_AreRight) {
  const Tensor nothing = tensor({0, 3}, {});
  expect_rows({
      {"mean of size 0",
       {tensor({0}, {})},
       [](const Inputs& x) { return mean(x[0]); },
       {Tensor::scalar(kNaN)}},
      {"sum over an axis of size 0",
       {nothing},
       [](const Inputs& x) { return sum(x[0], {0}); },
       {tensor({3}, {0, 0, 0})}},
      {"mean over an axis of size 0",
       {nothing},
       [](const Inputs& x) { return mean(x[0], {0}); },
       {tensor({3}, {kNaN, kNaN, kNaN})}},
  });
}

TEST(NumericsOnEveryPath, NaNInfinityAndSignedZero_AreRight) {
  const Tensor mixed = tensor({5}, {kInf, kNaN, -kInf, 2, -0.0});
  expect_rows({
      {"x * 0",
       {mixed},
       [](const Inputs& x) { return x[0] * 0; },
       {tensor({5}, {kNaN, kNaN, kNaN, 0, -0.0})}},
      {"x / x",
       {mixed},
       [](const Inputs& x) { return x[0] / x[0]; },
       {tensor({5}, {kNaN, kNaN, kNaN, 1, kNaN})}},
      {"x - x",
       {mixed},
       [](const Inputs& x) { return x[0] - x[0]; },
       {tensor({5}, {kNaN, kNaN, kNaN, 0, 0})}},
      {"a maximum with NaN",
       {tensor({5}, {7, kNaN, -2.5, 11, .25})},
       [](const Inputs& x) { return reduce(Reduction::max, x[0], {0}); },
       {Tensor::scalar(kNaN)}},
      {"x - (-0) of -0",
       {Tensor::scalar(-0.0)},
       [](const Inputs& x) { return x[0] - (-0.0); },
       {Tensor::scalar(0.0)}},
      {"the root of the square of the largest",
       {Tensor::scalar(3.4028235e38F)},
       [](const Inputs& x) { return sqrt(abs(x[0] * x[0])); },
       {Tensor::scalar(kInf32)}},
      {"a loss plus 0 times NaN",
       {Tensor::scalar(1.5), Tensor::scalar(kNaN)},
       [](const Inputs& x) { return x[0] + x[1] * 0; },
       {Tensor::scalar(kNaN)}},
      {"a broadcast",
       {tensor({4}, {-0.0, 1, -0.0, kInf})},
       [](const Inputs& x) {
         return broadcast_in_dim(x[0], {4, 2}, {0});
       },
       {tensor({4, 2}, {-0.0, -0.0, 1, 1, -0.0, -0.0, kInf, kInf})}},
      {"maxima of rows with -inf, of -inf alone, and beside a row with NaN",
       {tensor({3, 4}, {0, -kInf, 1, 2, -kInf, -kInf, -kInf, -kInf, 1, kNaN, kInf, 0})},
       [](const Inputs& x) { return reduce(Reduction::max, x[0], {1}); },
       {tensor({3}, {2, -kInf, kNaN})}},
      {"(a - a) / (a - a)",
       {Tensor::scalar(3.0)},
       [](const Inputs& x) { return (x[0] - x[0]) / (x[0] - x[0]); },
       {Tensor::scalar(kNaN)}},
      {"a scaled sum over two axes",
       {Tensor::of<float>({2, 2}, {1, 2, 3, 4})},
       [](const Inputs& x) {
         return sum(x[0] * 3, {0, 1});
       },
       {Tensor::scalar(30.0F)}},
      {"a product over nothing",
       {Tensor(DType::f32, {2, 0}), Tensor(DType::f32, {0, 2})},
       [](const Inputs& x) { return matmul(x[0], x[1]); },
       {Tensor(DType::f32, {2, 2})}},
      {"a product with full precision",
       {Tensor::of<float>({1, 1}, {1}), Tensor::of<float>({1, 1}, {1024.5F})},
       [](const Inputs& x) { return matmul(x[0], x[1]); },
       {Tensor::of<float>({1, 1}, {1024.5F})}},
  });
}

TEST(NumericsOnEveryPath, SoftmaxOfExtremes_IsRight) {
  const float lowest = std::numeric_limits<float>::lowest();
  expect_rows(
      {{"softmax",
        {Tensor::of<float>({5, 2},
                           {1000, 0, -1000, -1000, kInf32, 0, -kInf32, -kInf32, lowest, lowest})},
        [](const Inputs& x) { return softmax(x[0], 1); },
        {Tensor::of<float>({5, 2}, {1, 0, .5F, .5F, kNaN32, kNaN32, kNaN32, kNaN32, .5F, .5F})}}});
}

// Converting to what the targets of products do not have: the interpreter and the CPU backend.
TEST(NumericsOnEveryPath, Casts_RoundOnceEach) {
  const auto through = [](DType middle, DType last) {
    return [=](const Inputs& x) { return convert(convert(x[0], middle), last); };
  };
  const auto to = [](DType last) { return [=](const Inputs& x) { return convert(x[0], last); }; };
  const auto bits = [](DType dtype, std::uint64_t pattern) {
    return Tensor::filled(Literal{dtype, pattern}, {});
  };
  const Tensor half = Tensor::scalar(1 + 0x1p-11 + 0x1p-40);
  const Tensor brain = Tensor::scalar(1 + 0x1p-8 + 0x1p-40);
  const Tensor lowest = Tensor::filled(Literal::lowest_finite(DType::f32), {});
  expect_rows({
      {"f32, f16, f32",
       {Tensor::of<float>({3}, {1e-12F, 123456.7F, -2.643845F})},
       through(DType::f16, DType::f32),
       {Tensor::of<float>({3}, {0, kInf32, -2.64453125F})},
       none()},
      {"f64, f16", {half}, to(DType::f16), {bits(DType::f16, 0x3C01)}, none()},
      {"f64, f32, f16",
       {half},
       through(DType::f32, DType::f16),
       {bits(DType::f16, 0x3C00)},
       none()},
      {"f64, bf16", {brain}, to(DType::bf16), {bits(DType::bf16, 0x3F81)}, none()},
      {"f64, f32, bf16",
       {brain},
       through(DType::f32, DType::bf16),
       {bits(DType::bf16, 0x3F80)},
       none()},
      {"f64, f32, i1",
       {Tensor::scalar(1e-300)},
       through(DType::f32, DType::i1),
       {Tensor::scalar(false)},
       none()},
      {"i64, i32, i1",
       {Tensor::scalar(std::int64_t{1} << 32)},
       through(DType::i32, DType::i1),
       {Tensor::scalar(false)},
       none()},
      {"f32, i64, f32",
       {Tensor::of<float>({4}, {.3F, 1.7F, -.4F, -1.6F})},
       [](const Inputs& x) { return convert(convert(x[0] + 64, DType::i64), DType::f32) - 64; },
       {Tensor::of<float>({4}, {0, 1, -1, -2})},
       none()},
      {"lowest f32, bf16", {lowest}, to(DType::bf16), {bits(DType::bf16, 0xFF80)}, none()},
      {"lowest f32, f16", {lowest}, to(DType::f16), {bits(DType::f16, 0xFC00)}, none()},
      {"i8, f32, u8",
       {Tensor::scalar<std::int8_t>(-1)},
       through(DType::f32, DType::u8),
       {Tensor::scalar<std::uint8_t>(0)},
       none()},
      {"i8, u8",
       {Tensor::scalar<std::int8_t>(-1)},
       to(DType::u8),
       {Tensor::scalar<std::uint8_t>(255)},
       none()},
      {"i16, f32, i8",
       {Tensor::scalar<std::int16_t>(300)},
       through(DType::f32, DType::i8),
       {Tensor::scalar<std::int8_t>(127)},
       none()},
      {"i16, i8",
       {Tensor::scalar<std::int16_t>(300)},
       to(DType::i8),
       {Tensor::scalar<std::int8_t>(44)},
       none()},
  });
}

// No pass folds two converts into one: the programs above keep both, and a constant that goes
// through them is rounded twice.
TEST(NumericsOnEveryPath, TwoConverts_StayTwoInEveryPipeline) {
  Tape tape;
  const Var x = tape.input("x", {DType::f64, {2}});
  tape.output("y", convert(convert(x, DType::f32), DType::f16));
  const Var c = fill(tape.builder(), Literal::from_double(DType::f64, 1 + 0x1p-11 + 0x1p-40), {2});
  tape.output("z", convert(convert(c, DType::f32), DType::f16));
  const Program program = tape.finish();
  const Tensors inputs = {tensor({2}, {1 + 0x1p-11 + 0x1p-40, 1})};
  const Tensors ones(2, Tensor::filled(Literal{DType::f16, 0x3C00}, {2}));
  for (const Target& target : built_in_targets()) {
    for (const Slot slot : {Slot::forward, Slot::derivative, Slot::update}) {
      const Program result = run_passes(program, slot, default_pipeline(target, slot)).program;
      EXPECT_EQ(interpret(result, inputs), ones) << target.name() << print(result);
    }
  }
}

// From every value of up to 16 bits to every dtype.
TEST(NumericsOnEveryPath, EveryNarrowValueToEveryDtype_ConvertsOnTheCpuAsInTheInterpreter) {
  for (const DType from : {DType::bf16, DType::f16, DType::i16, DType::u16, DType::i8, DType::u8}) {
    Tensor all(from, {byte_size(from) == 1 ? 1 << 8 : 1 << 16});
    const std::span<std::byte> bytes = all.bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(byte_size(from) == 1 ? i
                                        : i % 2 == 0         ? i / 2 % 256
                                                             : i / 512);
    }
    Tape tape;
    const Var x = tape.input("x", all.type());
    for (const DType to :
         {DType::i1, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
          DType::u32, DType::u64, DType::bf16, DType::f16, DType::f32, DType::f64}) {
      tape.output(std::string(to_string(to)), convert(x, to));
    }
    const Program program = tape.finish();
    const Tensors want = interpret(program, Tensors{all});
    const Tensors got = CpuProgram(program).run(Tensors{all});
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(near(got[i], want[i])) << to_string(from) << " to " << program.outputs()[i].name;
    }
  }
}

TEST(Accuracy, LargeProduct_IsWithinAMillionthOfTheProductOfMagnitudes) {
  constexpr std::int64_t kSize = 512;
  RandomStream random(1, 0);
  Tensor a(DType::f32, {kSize, kSize});
  Tensor b(DType::f32, {kSize, kSize});
  for (Tensor* each : {&a, &b}) {
    for (float& value : each->data<float>()) value = static_cast<float>(random.normal());
  }
  Tape tape;
  const Var x = tape.input("a", a.type());
  const Var y = tape.input("b", b.type());
  tape.output("y", matmul(x, y));
  const Tensors got = CpuProgram(tape.finish()).run(Tensors{a, b});
  std::vector<double> exact(kSize * kSize);
  std::vector<double> magnitude(kSize * kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t k = 0; k < kSize; ++k) {
      const double left = a.data<float>()[i * kSize + k];
      for (std::size_t j = 0; j < kSize; ++j) {
        const double term = left * b.data<float>()[k * kSize + j];
        exact[i * kSize + j] += term;
        magnitude[i * kSize + j] += std::fabs(term);
      }
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, std::fabs(got[0].data<float>()[i] - exact[i]) / magnitude[i]);
  }
  EXPECT_LE(worst, 1e-6);
}

TEST(Accuracy, SumsByAProductWithOnes_AreWithinTwoMillionths) {
  for (const int exponent : {10, 16, 20, 24}) {
    const std::int64_t n = std::int64_t{1} << exponent;
    RandomStream random(2, static_cast<std::uint64_t>(exponent));
    Tensor values(DType::f32, {n});
    double exact = 0;
    for (float& value : values.data<float>()) {
      value = random.uniform_f32();
      exact += value;
    }
    Tape tape;
    tape.output("y", sum(tape.input("x", values.type())));
    const Program direct = tape.finish();
    const Program product = rewritten(direct, Target::matmul_only(), Slot::forward);
    for (const Program& program : {direct, product}) {
      CpuProgram compiled(program);
      const Tensor got = compiled.run(Tensors{values})[0];
      EXPECT_NEAR(got.element(0).as_double() / exact, 1, 2e-6) << "2^" << exponent;
      EXPECT_EQ(compiled.run(Tensors{values})[0], got);  // and the same bits again
    }
  }
}

}  // namespace
}  // namespace mulgrad
