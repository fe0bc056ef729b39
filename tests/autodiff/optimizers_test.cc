#include "autodiff/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gradient_check.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::matches_golden;
using testing::near;
using testing::read_golden;
using testing::throws;

// (count) -> the step scalars.
Program trace_scalars(const Optimizer& optimizer, DType dtype) {
  Tape tape("scalars");
  for (const NamedVar& scalar : optimizer.scalars(tape.input("count", {DType::i64, {}}), dtype)) {
    tape.output(scalar.name, scalar.value);
  }
  return tape.finish();
}

// (parameter, gradient, states, scalars) -> (parameter, states).
Program trace_update(const Optimizer& optimizer, const Type& type) {
  Tape tape("update");
  const Var parameter = tape.input("parameter", type);
  const Var gradient = tape.input("gradient", type);
  std::vector<Var> state;
  for (const std::string& name : optimizer.state()) state.push_back(tape.input(name, type));
  std::vector<Var> scalars;
  for (const std::string& name : optimizer.scalar_names()) {
    scalars.push_back(tape.input(name, {type.dtype, {}}));
  }
  const Update update = optimizer.update(parameter, gradient, state, scalars);
  tape.output("parameter", update.parameter);
  for (std::size_t i = 0; i < update.state.size(); ++i) {
    tape.output(optimizer.state()[i], update.state[i]);
  }
  return tape.finish();
}

// The parameter after each step, all programs run by the interpreter.
std::vector<Tensor> run(const Optimizer& optimizer, Tensor parameter,
                        const std::vector<Tensor>& gradients) {
  const Program scalars = trace_scalars(optimizer, parameter.dtype());
  const Program update = trace_update(optimizer, parameter.type());
  const std::vector<std::int64_t> sizes(parameter.sizes().begin(), parameter.sizes().end());
  std::vector<Tensor> state(optimizer.state().size(), Tensor(parameter.dtype(), sizes));
  std::vector<Tensor> steps;
  std::int64_t count = 0;
  for (const Tensor& gradient : gradients) {
    std::vector<Tensor> in = {parameter, gradient};
    in.insert(in.end(), state.begin(), state.end());
    for (Tensor& scalar : interpret(scalars, std::vector{Tensor::scalar(++count)})) {
      in.push_back(std::move(scalar));
    }
    std::vector<Tensor> out = interpret(update, in);
    parameter = out[0];
    state.assign(out.begin() + 1, out.end());
    steps.push_back(parameter);
  }
  return steps;
}

class OptimizerGolden : public ::testing::TestWithParam<DType> {
 protected:
  void expect_steps(const Optimizer& optimizer, const nlohmann::json& expected) {
    std::vector<Tensor> gradients;
    for (const auto& gradient : golden_["gradients"]) gradients.push_back(tensor(gradient));
    const std::vector<Tensor> steps = run(optimizer, tensor(golden_["start"]), gradients);
    ASSERT_EQ(steps.size(), expected["steps"].size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double relative = GetParam() == DType::f64 ? 1e-14 : 2e-6;
      const double of_largest = GetParam() == DType::f64 ? 1e-15 : 1e-7;
      EXPECT_TRUE(near(steps[i], tensor(expected["steps"][i]), {relative, of_largest}))
          << "step " << i + 1 << " of " << expected;
    }
  }
  Tensor tensor(const nlohmann::json& values) const {
    const auto doubles = values.get<std::vector<double>>();
    return Tensor::from_doubles(GetParam(), {2, 3}, doubles);
  }
  nlohmann::json golden_ = read_golden("nn.json")["optimizers"];
};

TEST_P(OptimizerGolden, SGD_FollowsPyTorchsFormula) {
  for (const auto& expected : golden_["sgd"]) {
    expect_steps(SGD({.rate = expected["rate"].get<double>(),
                      .momentum = expected["momentum"],
                      .weight_decay = expected["weight_decay"]}),
                 expected);
  }
}

TEST_P(OptimizerGolden, AdamW_FollowsPyTorchsFormula) {
  for (const auto& expected : golden_["adamw"]) {
    expect_steps(AdamW({.rate = expected["rate"].get<double>(),
                        .beta1 = expected["beta1"],
                        .beta2 = expected["beta2"],
                        .epsilon = expected["epsilon"],
                        .weight_decay = expected["weight_decay"]}),
                 expected);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, OptimizerGolden, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(SGD, Emitted_MatchesTheGoldens) {
  const SGD sgd({.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  EXPECT_TRUE(matches_golden(print(trace_scalars(sgd, DType::f32)), "autodiff/sgd_scalars.mlir"));
  EXPECT_TRUE(
      matches_golden(print(trace_update(sgd, {DType::f32, {2, 3}})), "autodiff/sgd_update.mlir"));
}

TEST(AdamW, Emitted_MatchesTheGoldens) {
  const AdamW adamw({.rate = 1e-3});
  EXPECT_TRUE(
      matches_golden(print(trace_scalars(adamw, DType::f32)), "autodiff/adamw_scalars.mlir"));
  EXPECT_TRUE(matches_golden(print(trace_update(adamw, {DType::f32, {2, 3}})),
                             "autodiff/adamw_update.mlir"));
}

TEST(SGD, WithoutMomentumAndDecay_IsOneProductAndOneDifference) {
  const SGD sgd({.rate = 0.1});
  EXPECT_THAT(sgd.state(), IsEmpty());
  EXPECT_EQ(trace_update(sgd, {DType::f32, {3}}).nodes().size(), 2u);
}

TEST(Optimizer, Names_AreInTheOrderOfTheValues) {
  EXPECT_THAT(SGD({.rate = 0.1, .momentum = 0.9}).state(), ElementsAre("momentum"));
  EXPECT_THAT(SGD({.rate = 0.1}).scalar_names(), ElementsAre("rate"));
  EXPECT_THAT(AdamW({}).state(), ElementsAre("m", "v"));
  EXPECT_THAT(AdamW({}).scalar_names(), ElementsAre("rate", "correction1", "correction2"));
}

// 1 - 0.999^t loses most of its bits in f32 when the power is taken first.
TEST(AdamW, CorrectionsInF32_AreAccurateToAFewRoundings) {
  const Program scalars = trace_scalars(AdamW({.beta2 = 0.9999}), DType::f32);
  for (const std::int64_t t : {1, 2, 10, 1000, 100000}) {
    const std::vector<Tensor> out = interpret(scalars, std::vector{Tensor::scalar(t)});
    const double exact1 = 1 - std::pow(0.9, t);
    const double exact2 = 1 - std::pow(0.9999, t);
    EXPECT_NEAR(out[1].to_doubles()[0], exact1, 2.5e-7 * exact1) << t;
    EXPECT_NEAR(out[2].to_doubles()[0], exact2, 2.5e-7 * exact2) << t;
  }
}

TEST(AdamW, BetaZero_CorrectsByExactlyOne) {
  const Program scalars = trace_scalars(AdamW({.beta1 = 0, .beta2 = 0}), DType::f32);
  const std::vector<Tensor> out = interpret(scalars, std::vector{Tensor::scalar<std::int64_t>(1)});
  EXPECT_EQ(out[1], Tensor::scalar(1.0f));
  EXPECT_EQ(out[2], Tensor::scalar(1.0f));
}

TEST(AdamW, ZeroGradient_OnlyDecays) {
  const std::vector<Tensor> steps =
      run(AdamW({.rate = 0.5, .weight_decay = 0.5}), Tensor::of<double>({2}, {8, -4}),
          {Tensor(DType::f64, {2})});
  EXPECT_EQ(steps[0], Tensor::of<double>({2}, {6, -3}));
}

TEST(Optimizer, EveryShape_IsKeptByElementwiseOpsAlone) {
  const Shape shapes[] = {{}, {0}, {1, 3}, {2, 3, 4}, {Dim::symbol("N"), 2}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const Program update = trace_update(AdamW({}), {dtype, shape});
      for (const Output& output : update.outputs()) {
        EXPECT_EQ(update.type(output.value), (Type{dtype, shape}));
      }
      for (const Node& node : update.nodes()) EXPECT_TRUE(is_elementwise(node.op));
    }
  }
}

// An update is an ordinary program: it can be derived, as learning to learn asks.
TEST(AdamW, Update_AgreesWithFiniteDifferences) {
  const std::vector<Tensor> in = {
      Tensor::of<double>({2}, {0.5, -2}),
      Tensor::of<double>({2}, {1, -0.25}),
      Tensor::of<double>({2}, {-0.5, 1.5}),
      Tensor::of<double>({2}, {0.75, 0.5}),
      Tensor::scalar(0.1),
      Tensor::scalar(0.5),
      Tensor::scalar(0.25),
  };
  EXPECT_TRUE(
      testing::check_gradients(trace_update(AdamW({.weight_decay = 0.1}), in[0].type()), in, 2));
}

TEST(Optimizer, SettingsOutOfTheirDomain_Throw) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT([] { SGD({.rate = -1}); }, throws(Category::invalid_argument, "rate: found -1.0"));
  EXPECT_THAT([=] { SGD({.rate = kInfinity}); }, throws(Category::invalid_argument, "rate"));
  EXPECT_THAT([] { SGD({.rate = 1, .momentum = 1}); },
              throws(Category::invalid_argument, "SGD momentum: found 1.0"));
  EXPECT_THAT([] { SGD({.rate = 1, .weight_decay = -1}); },
              throws(Category::invalid_argument, "SGD weight_decay"));
  EXPECT_THAT([] { AdamW({.rate = std::nan("")}); }, throws(Category::invalid_argument, "rate"));
  EXPECT_THAT([] { AdamW({.beta1 = 1}); }, throws(Category::invalid_argument, "AdamW beta1"));
  EXPECT_THAT([] { AdamW({.beta2 = -0.1}); }, throws(Category::invalid_argument, "AdamW beta2"));
  EXPECT_THAT([] { AdamW({.epsilon = -1}); }, throws(Category::invalid_argument, "AdamW epsilon"));
  EXPECT_THAT([] { AdamW({.weight_decay = -1}); },
              throws(Category::invalid_argument, "AdamW weight_decay"));
}

TEST(Optimizer, UnfitScalarsRequest_Throws) {
  const auto scalars = [](const Type& count, DType dtype) {
    Tape tape;
    AdamW({}).scalars(tape.input("count", count), dtype);
  };
  EXPECT_THAT(
      [&] {
        scalars({DType::i32, {}}, DType::f32);
      },
      throws(Category::invalid_update_signature,
             "step count: found tensor<i32>, expected tensor<i64>"));
  EXPECT_THAT(
      [&] {
        scalars({DType::i64, {1}}, DType::f32);
      },
      throws(Category::invalid_update_signature, "found tensor<1xi64>"));
  EXPECT_THAT(
      [&] {
        scalars({DType::i64, {}}, DType::i64);
      },
      throws(Category::dtype_mismatch, "found dtype i64, expected a float dtype"));
}

TEST(Optimizer, UnfitUpdateOperands_Throw) {
  const Type f32_row{DType::f32, {1, 4}};
  const Type f32_scalar{DType::f32, {}};
  const auto update = [&](const Type& gradient, std::vector<Type> states,
                          std::vector<Type> scalars) {
    Tape tape;
    std::int64_t count = 0;
    const auto declare = [&](const Type& type) {
      return tape.input("x" + std::to_string(count++), type);
    };
    const Var parameter = declare(f32_row);
    const Var g = declare(gradient);
    std::vector<Var> state_vars, scalar_vars;
    for (const Type& type : states) state_vars.push_back(declare(type));
    for (const Type& type : scalars) scalar_vars.push_back(declare(type));
    SGD({.rate = 0.1, .momentum = 0.9}).update(parameter, g, state_vars, scalar_vars);
  };
  EXPECT_NO_THROW(update(f32_row, {f32_row}, {f32_scalar}));
  const auto fails = [](const std::string& part) {
    return throws(Category::invalid_update_signature, part);
  };
  EXPECT_THAT(
      [&] {
        update({DType::f32, {3, 4}}, {f32_row}, {f32_scalar});
      },
      fails("gradient: found tensor<3x4xf32>, expected tensor<1x4xf32>"));
  EXPECT_THAT([&] { update(f32_row, {}, {f32_scalar}); },
              fails("found 0 state tensors, expected 1"));
  EXPECT_THAT([&] { update(f32_row, {f32_scalar}, {f32_scalar}); },
              fails("state momentum: found tensor<f32>, expected tensor<1x4xf32>"));
  EXPECT_THAT([&] { update(f32_row, {f32_row}, {}); }, fails("found 0 step scalars, expected 1"));
  EXPECT_THAT(
      [&] {
        update(f32_row, {f32_row}, {{DType::f32, {2, 1}}});
      },
      fails("step scalar rate: found tensor<2x1xf32>, expected tensor<f32>"));
  EXPECT_THAT(
      [&] {
        update(f32_row, {f32_row}, {{DType::f64, {}}});
      },
      fails("step scalar rate: found tensor<f64>, expected tensor<f32>"));
}

// The rate in steps 1 .. n.
std::vector<double> rates(const Schedule& schedule, DType dtype, std::int64_t n) {
  Tape tape("rate");
  tape.output("rate", schedule.emit(tape.input("count", {DType::i64, {}}), dtype));
  const Program program = tape.finish();
  std::vector<double> result;
  for (std::int64_t step = 1; step <= n; ++step) {
    result.push_back(interpret(program, std::vector{Tensor::scalar(step)})[0].to_doubles()[0]);
  }
  return result;
}

TEST(Schedule, Rates_FollowTheirFormulas) {
  const double root = std::sqrt(0.5);
  const std::vector<double> wave = {1, (1 + root) / 2, 0.5, (1 - root) / 2, 0, 0, 0};
  const Schedule fall = Schedule::cosine(1, 4);
  const struct {
    Schedule schedule;
    std::vector<double> expected;
  } cases[] = {
      {0.25, {0.25, 0.25, 0.25}},
      {Schedule(1).warmed_up(4), {0.25, 0.5, 0.75, 1, 1, 1}},
      {fall, wave},
      {Schedule::cosine(3, 4, 1), {3, 2 + root, 2, 2 - root, 1, 1}},
      // The cosine starts after the warm-up, from its first rate.
      {fall.warmed_up(2), {0.5, 1, 1, (1 + root) / 2, 0.5, (1 - root) / 2, 0, 0}},
      {fall.warmed_up(2).warmed_up(0), wave},
  };
  for (const auto& [schedule, expected] : cases) {
    for (const auto& [dtype, tolerance] : {std::pair(DType::f64, 1e-15),
                                           {DType::f32, 2e-7},
                                           {DType::f16, 1e-3},
                                           {DType::bf16, 8e-3}}) {
      const std::vector<double> found =
          rates(schedule, dtype, static_cast<std::int64_t>(expected.size()));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], tolerance) << to_string(dtype) << " step " << i + 1;
      }
    }
  }
  // Beyond what a 16-bit float counts exactly.
  EXPECT_NEAR(rates(Schedule::cosine(1, 5000), DType::bf16, 3001).back(), 0.345, 2e-3);
}

TEST(Schedule, UnfitNumbers_AreInvalidArguments) {
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [] { Schedule(-1); }, [] { Schedule(std::nan("")); }, [] { Schedule::cosine(1, 0); },
           [] { Schedule::cosine(1, 5, -1); }, [] { Schedule::cosine(-1, 5); },
           [] { Schedule(1).warmed_up(-1); }}) {
    EXPECT_THAT(call, throws(Category::invalid_argument, "found"));
  }
}

}  // namespace
}  // namespace mulgrad
