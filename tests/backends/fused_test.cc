// Fused loops against the interpreter, step by step, with the vector instructions of each set that
// the machine has.
#include "backends/cpu/fused.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "backends/cpu/fused_kernels.h"
#include "backends/cpu/fused_update.h"
#include "core/builder.h"
#include "core/interpreter.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/near.h"
#include "tests/support/op_cases.h"

namespace mulgrad::cpu {
namespace {

using testing::near;
using testing::Tolerance;
using testing::with_each_instruction_set;

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
    {0, 3},    {3, 0},    {1, 1},    {1, 10},  {4, 2},    {2, 1},  {128, 10}, {1000, 2}, {3, 1000},
    {1, 3000}, {3000, 1}, {2, 3000}, {37, 65}, {300, 17}, {5, 48}, {40, 64},  {3, 1024}, {2, 4096}};

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

// Writes loops down.
class Maker {
 public:
  Maker(std::int64_t rows, std::int64_t columns) : loop{rows, columns, {}, {}, {}} {}
  FusedArgument input(Extent extent, DType dtype = DType::f32) {
    loop.inputs.push_back({dtype, extent});
    return FromInput{static_cast<std::int32_t>(loop.inputs.size() - 1)};
  }
  FusedArgument step(Op op, const FusedArguments& arguments, Extent extent = Extent::full,
                     DType dtype = DType::f32) {
    loop.steps.push_back({std::move(op), arguments, dtype, extent});
    return FromStep{static_cast<std::int32_t>(loop.steps.size() - 1)};
  }
  void result(const FusedArgument& step) { loop.results.push_back(std::get<FromStep>(step).index); }

  FusedLoop loop;
};

Literal number(double value) { return Literal::from_double(DType::f32, value); }
const Reduce kSum{Reduction::sum, {}};
const Reduce kMax{Reduction::max, {}};

// Loss and gradient, with everything that is made on the way as results too.
FusedLoop softmax_cross_entropy(std::int64_t rows, std::int64_t columns) {
  Maker m(rows, columns);
  constexpr Extent kColumn = Extent::column;
  const auto x = m.input(Extent::full), label = m.input(kColumn, DType::i32);
  const auto classes = m.input(Extent::row);
  const auto labels = m.step(Convert{DType::f32}, {label}, kColumn);
  const auto hot = m.step(Compare{Comparison::EQ}, {labels, classes}, Extent::full, DType::i1);
  const auto one_hot = m.step(Convert{DType::f32}, {hot});
  const auto largest = m.step(kMax, {x}, kColumn);
  const auto z = m.step(Subtract{}, {x, largest});
  const auto e = m.step(Exponential{}, {z});
  const auto total = m.step(kSum, {e}, kColumn);
  const auto picked = m.step(kSum, {m.step(Multiply{}, {one_hot, z})}, kColumn);
  const auto loss = m.step(Subtract{}, {m.step(Log{}, {total}, kColumn), picked}, kColumn);
  const auto p = m.step(Divide{}, {e, total});
  const auto gradient =
      m.step(Divide{}, {m.step(Subtract{}, {p, one_hot}), number(static_cast<double>(rows))});
  for (const auto& made : {gradient, loss, p, largest, hot}) m.result(made);
  m.result(m.step(kSum, {gradient}, Extent::row));
  m.result(m.step(kSum, {loss}, Extent::scalar));
  return m.loop;
}

FusedLoop layer_norm(std::int64_t rows, std::int64_t columns) {
  Maker m(rows, columns);
  constexpr Extent kColumn = Extent::column;
  const auto x = m.input(Extent::full), scale = m.input(Extent::row), shift = m.input(Extent::row);
  const Literal count = number(static_cast<double>(columns));
  const auto mean = m.step(Divide{}, {m.step(kSum, {x}, kColumn), count}, kColumn);
  const auto centered = m.step(Subtract{}, {x, mean});
  const auto squares = m.step(kSum, {m.step(Multiply{}, {centered, centered})}, kColumn);
  const auto variance = m.step(Divide{}, {squares, count}, kColumn);
  const auto inverse = m.step(Rsqrt{}, {m.step(Add{}, {variance, number(1e-5)}, kColumn)}, kColumn);
  const auto twice = m.step(Multiply{}, {scale, number(2)}, Extent::row);
  const auto normal = m.step(Multiply{}, {centered, inverse});
  m.result(m.step(Add{}, {m.step(Multiply{}, {normal, twice}), shift}));
  m.result(m.step(kSum, {twice}, Extent::scalar));
  m.result(twice);
  m.result(inverse);
  return m.loop;
}

TEST(FusedChain, SoftmaxCrossEntropyAndLayerNorm_EqualTheInterpreter) {
  const double ulp = ulp_of(DType::f32);
  with_each_instruction_set([&] {
    for (const auto& [rows, columns] : kSpaces) {
      if (rows == 0 || columns == 0) continue;
      for (const FusedLoop& loop :
           {softmax_cross_entropy(rows, columns), layer_norm(rows, columns)}) {
        EXPECT_TRUE(agrees(loop, inputs_for(loop, Numbers::ordinary),
                           {.relative = 8 * ulp, .of_largest = 32 * ulp}));
      }
    }
  });
}

// A row's sum read in the same loop, and values of no element of the space.
TEST(FusedChain, ScalarsOfARow_EqualTheInterpreter) {
  for (const auto& [rows, columns] : kSpaces) {
    Maker m(rows, columns);
    const auto x = m.input(Extent::full), row = m.input(Extent::row);
    const auto total = m.step(kSum, {row}, Extent::scalar);
    const auto root = m.step(Sqrt{}, {m.step(Abs{}, {total}, Extent::scalar)}, Extent::scalar);
    m.result(m.step(Multiply{}, {x, root}));
    m.result(root);
    EXPECT_TRUE(agrees(m.loop, inputs_for(m.loop, Numbers::ordinary),
                       {.relative = 4 * ulp_of(DType::f32), .of_largest = 1e-5}));
  }
}

TEST(FusedChain, Copies_EqualTheInterpreter) {
  for (const auto& [rows, columns] : kSpaces) {
    Maker m(rows, columns);
    const auto x = m.input(Extent::full), row = m.input(Extent::row);
    const auto repeated = m.step(StopGradient{}, {row});
    const auto again = m.step(Convert{DType::f32}, {repeated});
    m.step(Exponential{}, {again});  // which nothing reads
    const auto product = m.step(Multiply{}, {x, again});
    m.result(m.step(kSum, {again}, Extent::column));
    m.result(m.step(StopGradient{}, {product}));
    m.result(again);
    m.result(product);
    EXPECT_TRUE(agrees(m.loop, inputs_for(m.loop, Numbers::ordinary),
                       {.relative = 4 * ulp_of(DType::f32), .of_largest = 1e-5}));
  }
}

enum class Form { plain, decayed, clipped };

FusedLoop adamw(std::int64_t rows, std::int64_t columns, Form form) {
  Maker m(rows, columns);
  constexpr Extent kScalar = Extent::scalar;
  const auto m2 = m.input(Extent::full), given = m.input(Extent::full);
  const auto rate = m.input(kScalar), c1 = m.input(kScalar), c2 = m.input(kScalar);
  const auto m1 = m.input(Extent::full), p = m.input(Extent::full), clip = m.input(kScalar);
  const auto g = form == Form::clipped ? m.step(Multiply{}, {clip, given}) : given;
  const auto shrink =
      m.step(Subtract{}, {number(1), m.step(Multiply{}, {rate, number(0.01)}, kScalar)}, kScalar);
  const auto kept = form == Form::decayed ? m.step(Multiply{}, {p, shrink}) : p;
  const auto first =
      m.step(Add{}, {m.step(Multiply{}, {number(0.9), m1}), m.step(Multiply{}, {g, number(0.1)})});
  const auto second =
      m.step(Add{}, {m.step(Multiply{}, {m.step(Multiply{}, {g, g}), number(0.001)}),
                     m.step(Multiply{}, {number(0.999), m2})});
  const auto direction = m.step(Divide{}, {first, c1});
  const auto scale =
      m.step(Add{}, {m.step(Sqrt{}, {m.step(Divide{}, {second, c2})}), number(1e-8)});
  const auto step = m.step(Divide{}, {m.step(Multiply{}, {rate, direction}), scale});
  m.result(first);
  m.result(m.step(Subtract{}, {kept, step}));
  m.result(second);
  return m.loop;
}

FusedLoop momentum(std::int64_t rows, std::int64_t columns, Form form) {
  Maker m(rows, columns);
  const auto p = m.input(Extent::full), given = m.input(Extent::full), v = m.input(Extent::full);
  const auto rate = m.input(Extent::scalar), clip = m.input(Extent::scalar);
  const auto g = form == Form::clipped ? m.step(Multiply{}, {clip, given}) : given;
  const auto kept = m.step(Add{}, {m.step(Multiply{}, {number(0.9), v}), g});
  m.result(m.step(Subtract{}, {p, m.step(Multiply{}, {rate, kept})}));
  m.result(kept);
  return m.loop;
}

// With one more step a loop is no update that is known, and runs block by block.
TEST(FusedUpdate, InOnePass_HasTheBitsOfBlocks) {
  with_each_instruction_set([] {
    for (const auto& [rows, columns] : kSpaces) {
      for (const Form form : {Form::plain, Form::decayed, Form::clipped}) {
        for (const FusedLoop& loop : {adamw(rows, columns, form), momentum(rows, columns, form)}) {
          ASSERT_TRUE(update_of(loop));
          FusedLoop longer = loop;
          longer.steps.push_back({Abs{}, {FromInput{1}}, DType::f32, Extent::full});
          longer.results.push_back(static_cast<std::int32_t>(longer.steps.size() - 1));
          ASSERT_FALSE(update_of(longer));
          const std::vector<Tensor> inputs = inputs_for(loop, Numbers::ordinary);
          EXPECT_TRUE(agrees(loop, inputs, {}));
          std::vector<Tensor> by_blocks = run(fused_kernel(longer), longer, inputs);
          by_blocks.pop_back();
          EXPECT_EQ(run(fused_kernel(loop), loop, inputs), by_blocks);
        }
      }
    }
  });
}

TEST(FusedUpdate, OtherStructure_IsNone) {
  FusedLoop of_two_gradients = momentum(5, 5, Form::plain);
  of_two_gradients.steps[1].arguments[1] = FromInput{3};  // the sum of a full value and a scalar
  EXPECT_FALSE(update_of(of_two_gradients));
  FusedLoop divided = momentum(5, 5, Form::plain);
  divided.steps[0].op = Divide{};
  EXPECT_FALSE(update_of(divided));
  FusedLoop less = adamw(5, 5, Form::plain);
  less.results.pop_back();
  EXPECT_FALSE(update_of(less));
}

// Each result over an input of its size; the inputs are gone then.
TEST(FusedLoop, ResultsOverInputs_AreAsElsewhere) {
  for (const auto& [rows, columns] : kSpaces) {
    Maker m(rows, columns);
    const auto a = m.input(Extent::full), b = m.input(Extent::full), row = m.input(Extent::row);
    const auto sum = m.step(Add{}, {a, row});
    const auto product = m.step(Multiply{}, {sum, b});
    m.result(sum);
    m.result(m.step(Subtract{}, {product, a}));
    for (FusedLoop loop : {m.loop, momentum(rows, columns, Form::plain)}) {
      const std::vector<Tensor> inputs = inputs_for(loop, Numbers::ordinary);
      const Kernel kernel = fused_kernel(loop);
      const std::vector<Tensor> wanted = run(kernel, loop, inputs);
      for (const std::size_t over : {0, 1}) {
        std::vector<Tensor> memory = inputs;
        std::vector<const std::byte*> from;
        for (const Tensor& input : memory) from.push_back(input.bytes().data());
        std::byte* to[] = {memory[over].bytes().data(), memory[1 - over].bytes().data()};
        kernel(to, from);
        EXPECT_EQ(memory[over], wanted[0]) << fused_name(loop);
        EXPECT_EQ(memory[1 - over], wanted[1]) << fused_name(loop);
      }
    }
  }
}

// A row or a number over an input of its extent that is read after the result is known: in the
// loop, or behind it.
TEST(FusedLoop, SmallResultsOverInputs_AreAsElsewhere) {
  for (const auto& [rows, columns] : kSpaces) {
    std::vector<FusedLoop> loops;
    for (const Extent extent : {Extent::scalar, Extent::row}) {
      Maker m(rows, columns);
      const auto small = m.input(extent), x = m.input(Extent::full);
      m.result(m.step(kSum, {x}, extent));
      m.result(m.step(Add{}, {x, small}));
      loops.push_back(m.loop);
    }
    Maker m(rows, columns);
    const auto small = m.input(Extent::scalar), x = m.input(Extent::full);
    const auto row = m.input(Extent::row);
    m.result(m.step(kSum, {x}, Extent::scalar));
    const auto total = m.step(kSum, {row}, Extent::scalar);
    m.result(m.step(Subtract{}, {small, total}, Extent::scalar));
    loops.push_back(m.loop);
    for (const FusedLoop& loop : loops) {
      const std::vector<Tensor> inputs = inputs_for(loop, Numbers::ordinary);
      const Kernel kernel = fused_kernel(loop);
      const std::vector<Tensor> wanted = run(kernel, loop, inputs);
      std::vector<Tensor> memory = inputs;
      Tensor other(DType::f32,
                   sizes_of(loop, loop.steps[static_cast<std::size_t>(loop.results[1])].extent));
      std::vector<const std::byte*> from;
      for (const Tensor& input : memory) from.push_back(input.bytes().data());
      std::byte* to[] = {memory[0].bytes().data(), other.bytes().data()};
      kernel(to, from);
      EXPECT_EQ(memory[0], wanted[0]) << fused_name(loop);
      EXPECT_EQ(other, wanted[1]) << fused_name(loop);
    }
  }
}

TEST(FusedKernels, EqualLoops_ShareAKernel) {
  FusedKernels kernels;
  const FusedLoop loop = momentum(4, 3, Form::plain);
  const NamedKernel& first = kernels.of(loop);
  EXPECT_EQ(first.name, fused_name(loop));
  EXPECT_EQ(&kernels.of(momentum(4, 3, Form::plain)), &first);
}

// All that a loop holds is part of what it is known by.
TEST(FusedKernels, LoopsThatDifferAnywhere_HaveTheirOwn) {
  const FusedLoop plain{4,
                        3,
                        {{DType::f32, Extent::full}, {DType::f32, Extent::full}},
                        {{Add{}, {FromInput{0}, Literal::of(2.0F)}, DType::f32, Extent::full},
                         {Multiply{}, {FromStep{0}, FromInput{1}}, DType::f32, Extent::full}},
                        {1}};
  std::vector<FusedLoop> loops(12, plain);
  loops[1].rows = 5;
  loops[2].columns = 5;
  loops[3].inputs[1].extent = Extent::row;
  loops[4].inputs[1].dtype = DType::f64;
  loops[5].steps[0].op = Subtract{};
  loops[6].steps[0].arguments[0] = FromInput{1};
  loops[7].steps[0].arguments[1] = Literal::of(3.0F);
  loops[8].steps[1].arguments[0] = FromInput{0};
  loops[9].steps[0].dtype = DType::f64;
  loops[10].steps[0].extent = Extent::row;
  loops[11].results = {0, 1};
  for (std::size_t i = 0; i < loops.size(); ++i) {
    for (std::size_t k = 0; k < loops.size(); ++k) EXPECT_EQ(loops[i] == loops[k], i == k);
  }
  FusedKernels kernels;
  loops.erase(loops.begin() + 9);  // no loop that can run
  loops.erase(loops.begin() + 4);
  std::set<const NamedKernel*> made;
  for (const FusedLoop& loop : loops) made.insert(&kernels.of(loop));
  EXPECT_EQ(made.size(), loops.size());
}

TEST(FusedName, Loop_TellsSizesAndSteps) {
  EXPECT_EQ(fused_name(momentum(128, 10, Form::plain)),
            "fused_f32 128x10 (multiply add multiply subtract)");
  FusedLoop loop{4,
                 2,
                 {{DType::f64, Extent::full}},
                 {{kMax, {FromInput{0}}, DType::f64, Extent::column},
                  {StopGradient{}, {FromStep{0}}, DType::f64, Extent::column}},
                 {1}};
  EXPECT_EQ(fused_name(loop), "fused_f64 4x2 (reduce_max stop_gradient)");
}

TEST(CanFuse, OtherOpsAndTypes_AreRefused) {
  const DType two[] = {DType::i32, DType::i32};
  EXPECT_FALSE(can_fuse(Add{}, two, DType::i32));
  EXPECT_FALSE(can_fuse(Compare{Comparison::LT}, two, DType::i1));
  const DType half[] = {DType::f16};
  EXPECT_FALSE(can_fuse(Exponential{}, half, DType::f16));
  const DType single[] = {DType::f32};
  EXPECT_FALSE(can_fuse(Convert{DType::i32}, single, DType::i32));
  EXPECT_FALSE(can_fuse(Transpose{{0}}, single, DType::f32));
  EXPECT_FALSE(can_fuse(Reduce{Reduction::product, {0}}, single, DType::f32));
  EXPECT_TRUE(can_fuse(Reduce{Reduction::min, {0}}, single, DType::f32));
}

// Sampled from all floats, against the C library in double, in the largest relative unit.
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
        const double unit = std::fmax(std::fabs(want) * ulp_of(DType::f32), 0x1p-149);
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
