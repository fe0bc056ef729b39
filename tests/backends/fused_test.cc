// Fused loops against the interpreter, step by step, with the vector instructions of each set that
// the machine has.
#include "backends/cpu/fused.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <random>

#include "core/builder.h"
#include "core/interpreter.h"
#include "tests/support/near.h"
#include "tests/support/op_cases.h"

namespace mulgrad::cpu {
namespace {

using testing::near;
using testing::Tolerance;

std::vector<std::int64_t> sizes_of(const FusedLoop& loop, Extent extent) {
  const bool rows = extent == Extent::full || extent == Extent::column;
  const bool columns = extent == Extent::full || extent == Extent::row;
  return {rows ? loop.rows : 1, columns ? loop.columns : 1};
}

// The values of the steps by the interpreter, which takes sizes of 1 against any.
std::vector<Tensor> expected(const FusedLoop& loop, std::span<const Tensor> inputs) {
  Builder builder;
  const ValueId any_value = builder.input("x", {DType::f32, {}});  // the interpreter does not look
  std::vector<Tensor> values;
  for (const FusedStep& step : loop.steps) {
    Node node{step.op, {}, {}};
    std::vector<const Tensor*> operands;
    for (const FusedArgument& argument : step.arguments) {
      if (const auto* literal = std::get_if<Literal>(&argument)) {
        node.operands.push_back(*literal);
        operands.push_back(nullptr);
      } else {
        const auto* input = std::get_if<FromInput>(&argument);
        node.operands.push_back(any_value);
        operands.push_back(
            input != nullptr
                ? &inputs[static_cast<std::size_t>(input->index)]
                : &values[static_cast<std::size_t>(std::get<FromStep>(argument).index)]);
      }
    }
    const std::vector<std::int64_t> sizes = sizes_of(loop, step.extent);
    node.type = {step.dtype, Shape::of(sizes)};
    if (auto* reduce = std::get_if<Reduce>(&node.op)) {
      // The axes that shrink, and where nothing can, none.
      std::vector<std::int64_t> kept;
      reduce->axes.clear();
      const bool columns_too = step.extent == Extent::scalar || step.extent == Extent::column;
      const bool rows_too = step.extent == Extent::scalar || step.extent == Extent::row;
      if (rows_too) reduce->axes.push_back(0);
      if (columns_too) reduce->axes.push_back(1);
      if (!rows_too) kept.push_back(sizes[0]);
      if (!columns_too) kept.push_back(sizes[1]);
      node.type = {step.dtype, Shape::of(kept)};
    }
    Tensor value = evaluate_node(node, operands);
    Tensor shaped(step.dtype, sizes);
    std::ranges::copy(value.bytes(), shaped.bytes().begin());
    values.push_back(std::move(shaped));
  }
  return values;
}

std::vector<Tensor> run(const Kernel& kernel, const FusedLoop& loop,
                        std::span<const Tensor> inputs) {
  std::vector<Tensor> results;
  for (const std::int32_t step : loop.results) {
    const FusedStep& made = loop.steps[static_cast<std::size_t>(step)];
    results.emplace_back(made.dtype, sizes_of(loop, made.extent));
    std::ranges::fill(results.back().bytes(), std::byte{0xff});  // not what a kernel may rely on
  }
  std::vector<std::byte*> to;
  std::vector<const std::byte*> from;
  for (Tensor& result : results) to.push_back(result.bytes().data());
  for (const Tensor& input : inputs) from.push_back(input.bytes().data());
  kernel(to, from);
  return results;
}

::testing::AssertionResult agrees(const FusedLoop& loop, std::span<const Tensor> inputs,
                                  Tolerance tolerance) {
  const Kernel kernel = fused_kernel(loop);
  const std::vector<Tensor> values = expected(loop, inputs);
  const std::vector<Tensor> results = run(kernel, loop, inputs);
  if (run(kernel, loop, inputs) != results) {
    return ::testing::AssertionFailure() << fused_name(loop) << ": two runs differ";
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto close =
        near(results[i], values[static_cast<std::size_t>(loop.results[i])], tolerance);
    if (!close) return ::testing::AssertionFailure() << fused_name(loop) << ": " << close.message();
  }
  return ::testing::AssertionSuccess();
}

enum class Numbers { ordinary, special };

Tensor numbers(DType dtype, const std::vector<std::int64_t>& sizes, Numbers kind,
               std::mt19937_64& random) {
  Tensor result(dtype, sizes);
  const std::span<const Literal> special = testing::special_values(dtype);
  const std::size_t bytes = static_cast<std::size_t>(byte_size(dtype));
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    Literal value = special[random() % special.size()];
    if (kind == Numbers::ordinary || (dtype != DType::i1 && random() % 4 == 0)) {
      const double number = std::ldexp(static_cast<double>(random() >> 11), -51) - 2;
      value = is_float(dtype) ? Literal::from_double(dtype, number)
              : dtype == DType::i1
                  ? Literal::from_int(dtype, number > 0)
                  : Literal::from_int(dtype, static_cast<std::int64_t>(number * 50));
    }
    std::memcpy(result.bytes().data() + static_cast<std::size_t>(i) * bytes, &value.bits, bytes);
  }
  return result;
}

std::vector<Tensor> inputs_for(const FusedLoop& loop, Numbers kind, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> inputs;
  for (const FusedInput& input : loop.inputs) {
    inputs.push_back(numbers(input.dtype, sizes_of(loop, input.extent), kind, random));
  }
  return inputs;
}

double ulp_of(DType dtype) { return std::ldexp(1.0, -mantissa_bits(dtype)); }

Tolerance tolerance_of(const Op& op, DType dtype) {
  switch (kind_of(op)) {
    case OpKind::Exponential:
    case OpKind::ExponentialMinusOne:
    case OpKind::Log:
    case OpKind::LogPlusOne:
    case OpKind::Rsqrt:
    case OpKind::Tanh:
    case OpKind::Logistic:
    case OpKind::Erf:
    case OpKind::Power:
    case OpKind::Sine:
    case OpKind::Cosine:
      return {.relative = 4 * ulp_of(dtype)};
    default:
      return {};
  }
}

const std::pair<std::int64_t, std::int64_t> kSpaces[] = {
    {0, 3},    {3, 0},    {1, 1},    {1, 10},   {4, 2},   {2, 1},    {128, 10}, {1000, 2},
    {3, 1000}, {1, 3000}, {3000, 1}, {2, 3000}, {37, 65}, {300, 17}, {5, 48}};

// Calls body once for every instruction set of the machine.
template <class F>
void with_each_instruction_set(F body) {
  const std::int64_t all = hwy::SupportedTargets();
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SCALAR}) {
    if (target != HWY_SCALAR && (all & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

struct Sample {
  Op op;
  std::vector<DType> operands;
  DType result;
};

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::f64}) {
    for (const Op& op :
         std::vector<Op>{Negate{}, Abs{}, Sign{}, Exponential{}, ExponentialMinusOne{}, Log{},
                         LogPlusOne{}, Sqrt{}, Rsqrt{}, Tanh{}, Logistic{}, Sine{}, Cosine{},
                         Floor{}, Ceil{}, RoundNearestEven{}, Erf{}, StopGradient{}}) {
      all.push_back({op, {t}, t});
    }
    for (const Op& op :
         std::vector<Op>{Add{}, Subtract{}, Multiply{}, Divide{}, Maximum{}, Minimum{}, Power{}}) {
      all.push_back({op, {t, t}, t});
    }
    for (const Comparison c : {Comparison::EQ, Comparison::NE, Comparison::LT, Comparison::LE,
                               Comparison::GT, Comparison::GE}) {
      all.push_back({Compare{c}, {t, t}, DType::i1});
    }
    all.push_back({IsFinite{}, {t}, DType::i1});
    all.push_back({Select{}, {DType::i1, t, t}, t});
    all.push_back({Clamp{}, {t, t, t}, t});
    all.push_back({Convert{DType::i1}, {t}, DType::i1});
    for (const DType from : {DType::i1, DType::i32, DType::i64, DType::f32, DType::f64}) {
      all.push_back({Convert{t}, {from}, t});
    }
  }
  all.push_back({Not{}, {DType::i1}, DType::i1});
  all.push_back({And{}, {DType::i1, DType::i1}, DType::i1});
  all.push_back({Or{}, {DType::i1, DType::i1}, DType::i1});
  all.push_back({Select{}, {DType::i1, DType::i1, DType::i1}, DType::i1});
  return all;
}

// Every combination of extents of the operands that broadcasts to the result's.
void check_extents(const Sample& sample, std::int64_t rows, std::int64_t columns) {
  const std::size_t arity = sample.operands.size();
  constexpr Extent kExtents[] = {Extent::full, Extent::row, Extent::column, Extent::scalar};
  std::size_t combinations = 1;
  for (std::size_t i = 0; i < arity; ++i) combinations *= 4;
  for (std::size_t combination = 0; combination < combinations; ++combination) {
    FusedLoop loop{rows, columns, {}, {}, {0}};
    FusedStep step{sample.op, {}, sample.result, Extent::scalar};
    std::size_t rest = combination;
    for (std::size_t i = 0; i < arity; ++i, rest /= 4) {
      const Extent extent = kExtents[rest % 4];
      loop.inputs.push_back({sample.operands[i], extent});
      step.arguments.push_back(FromInput{static_cast<std::int32_t>(i)});
      if (step.extent == Extent::scalar) {
        step.extent = extent;
      } else if (extent != step.extent && extent != Extent::scalar) {
        step.extent = Extent::full;
      }
    }
    loop.steps.push_back(step);
    const Tolerance tolerance = tolerance_of(sample.op, sample.result);
    for (const Numbers kind : {Numbers::ordinary, Numbers::special}) {
      EXPECT_TRUE(agrees(loop, inputs_for(loop, kind, combination), tolerance))
          << "combination " << combination;
    }
  }
}

TEST(FusedLoop, EveryOp_EqualsTheInterpreter) {
  with_each_instruction_set([] {
    for (const Sample& sample : samples()) {
      ASSERT_TRUE(can_fuse(sample.op, sample.operands, sample.result)) << info(sample.op).name;
      check_extents(sample, 3, 5);
      check_extents(sample, 2, 50);
    }
  });
}

// The spaces by a unary, a binary and a comparing op, whose loops all others share.
TEST(FusedLoop, EverySpace_EqualsTheInterpreter) {
  with_each_instruction_set([] {
    for (const auto& [rows, columns] : kSpaces) {
      check_extents({Negate{}, {DType::f32}, DType::f32}, rows, columns);
      check_extents({Subtract{}, {DType::f64, DType::f64}, DType::f64}, rows, columns);
      check_extents({Compare{Comparison::LT}, {DType::f32, DType::f32}, DType::i1}, rows, columns);
    }
  });
}

TEST(FusedLoop, Literals_EqualTheInterpreter) {
  for (const Sample& sample : samples()) {
    if (sample.operands.size() < 2 || sample.operands.back() == DType::i1) continue;
    for (const double value : {1.5, -0.0, 0.0}) {
      const auto literal = Literal::from_double(sample.operands.back(), value);
      for (std::size_t at = 0; at < sample.operands.size(); ++at) {
        if (sample.operands[at] == DType::i1) continue;
        FusedLoop loop{7, 33, {}, {{sample.op, {}, sample.result, Extent::full}}, {0}};
        for (std::size_t i = 0; i < sample.operands.size(); ++i) {
          const auto input = FromInput{static_cast<std::int32_t>(loop.inputs.size())};
          if (i == at) {
            loop.steps[0].arguments.push_back(literal);
          } else {
            loop.steps[0].arguments.push_back(input);
            loop.inputs.push_back({sample.operands[i], Extent::full});
          }
        }
        EXPECT_TRUE(agrees(loop, inputs_for(loop, Numbers::special),
                           tolerance_of(sample.op, sample.result)));
      }
    }
  }
}

TEST(FusedLoop, Reductions_EqualTheInterpreter) {
  constexpr std::pair<Extent, Extent> kForms[] = {{Extent::full, Extent::column},
                                                  {Extent::full, Extent::row},
                                                  {Extent::full, Extent::scalar},
                                                  {Extent::column, Extent::scalar},
                                                  {Extent::row, Extent::scalar}};
  with_each_instruction_set([&] {
    for (const auto& [rows, columns] : kSpaces) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        for (const Reduction kind : {Reduction::sum, Reduction::max, Reduction::min}) {
          for (const auto& [from, to] : kForms) {
            const FusedLoop loop{rows,
                                 columns,
                                 {{dtype, from}},
                                 {{Reduce{kind, {}}, {FromInput{0}}, dtype, to}},
                                 {0}};
            const bool sum = kind == Reduction::sum;
            // Of terms that cancel: the error is one of the terms' size.
            const Tolerance tolerance{.relative = sum ? 4 * ulp_of(dtype) : 0,
                                      .of_largest = sum ? 1000 * ulp_of(DType::f64) : 0};
            EXPECT_TRUE(agrees(loop, inputs_for(loop, Numbers::ordinary), tolerance));
            // Whether the largest f64 overflow on the way depends on the order of the terms.
            if (sum && dtype == DType::f64) continue;
            EXPECT_TRUE(agrees(loop, inputs_for(loop, Numbers::special), tolerance));
          }
        }
      }
    }
  });
}

TEST(FusedLoop, SumOfNegativeZeros_IsNegative) {
  const FusedLoop loop{40,
                       3,
                       {{DType::f32, Extent::full}},
                       {{Reduce{Reduction::sum, {}}, {FromInput{0}}, DType::f32, Extent::column},
                        {Reduce{Reduction::sum, {}}, {FromInput{0}}, DType::f32, Extent::row},
                        {Reduce{Reduction::sum, {}}, {FromInput{0}}, DType::f32, Extent::scalar}},
                       {0, 1, 2}};
  const Tensor zeros[] = {Tensor::filled(Literal::from_double(DType::f32, -0.0), {40, 3})};
  EXPECT_TRUE(agrees(loop, zeros, {}));
}

// Sums accumulate in f64, which leaves one rounding.
TEST(FusedLoop, LongSums_AreExactToTheLastPlace) {
  for (const std::int64_t n : {1 << 10, 1 << 16, 1 << 20}) {
    const FusedLoop loop{n,
                         1,
                         {{DType::f32, Extent::full}},
                         {{Reduce{Reduction::sum, {}}, {FromInput{0}}, DType::f32, Extent::scalar}},
                         {0}};
    EXPECT_TRUE(
        agrees(loop, inputs_for(loop, Numbers::ordinary), {.relative = ulp_of(DType::f32)}));
  }
}

// Sampled from all floats, against the C library in double.
TEST(FusedMath, AllOverTheRange_WithinFourUnits) {
  const struct {
    Op op;
    double (*function)(double);
  } cases[] = {
      {Exponential{}, std::exp}, {ExponentialMinusOne{}, std::expm1},
      {Log{}, std::log},         {LogPlusOne{}, std::log1p},
      {Tanh{}, std::tanh},       {Logistic{}, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Erf{}, std::erf}};
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 40961) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  const auto n = std::ssize(x);
  const Tensor inputs[] = {Tensor::of<float>({n, 1}, x)};
  with_each_instruction_set([&] {
    for (const auto& item : cases) {
      const FusedLoop loop{n,
                           1,
                           {{DType::f32, Extent::full}},
                           {{item.op, {FromInput{0}}, DType::f32, Extent::full}},
                           {0}};
      const Tensor found = run(fused_kernel(loop), loop, inputs)[0];
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = item.function(x[i]);
        const float rounded = static_cast<float>(want);
        const float got = found.data<float>()[i];
        if (got == rounded || (std::isnan(got) && std::isnan(rounded))) continue;
        const double unit = std::ldexp(1.0, std::max(std::ilogb(want), -126) - 23);
        const double error = std::fabs(static_cast<double>(got) - want) / unit;
        worst = std::fmax(worst, error);
        ASSERT_LE(error, 4) << info(item.op).name << " of " << x[i] << ": " << got << ", expected "
                            << rounded;
      }
      RecordProperty(std::string(info(item.op).name), std::to_string(worst));
    }
  });
}

}  // namespace
}  // namespace mulgrad::cpu
