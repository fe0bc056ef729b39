#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/losses.h"
#include "autodiff/random.h"
#include "backends/cpu/session.h"
#include "core/interpreter.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using ::testing::HasSubstr;
using testing::near;
using testing::throws;

const Dim kBatch = Dim::symbol("B");

// A two-layer regression, batch symbolic.
TrainingSpec network(DType dtype, std::shared_ptr<const Optimizer> optimizer) {
  TrainingSpec spec;
  spec.inputs = {{"x", {dtype, {kBatch, 3}}},
                 {"w1", {dtype, {3, 4}}},
                 {"b1", {dtype, {1, 4}}},
                 {"w2", {dtype, {4, 2}}},
                 {"y", {dtype, {kBatch, 2}}}};
  spec.parameters = {"w1", "b1", "w2"};
  spec.loss = [](Tape&, const NamedVars& in) {
    const Var hidden = tanh(matmul(in["x"], in["w1"]) + in["b1"]);
    return mse(matmul(hidden, in["w2"]), in["y"]);
  };
  return with_optimizer(std::move(spec), std::move(optimizer));
}

Tensor numbers(DType dtype, std::vector<std::int64_t> sizes, int seed) {
  Tensor result(dtype, std::move(sizes));
  std::vector<double> values;
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    values.push_back(std::sin(1.7 * static_cast<double>(i) + seed));
  }
  const std::vector<std::int64_t> shape(result.sizes().begin(), result.sizes().end());
  return Tensor::from_doubles(dtype, shape, values);
}

std::vector<Tensor> start(DType dtype) {
  return {numbers(dtype, {3, 4}, 1), numbers(dtype, {1, 4}, 2), numbers(dtype, {4, 2}, 3)};
}

std::vector<Tensor> batch(DType dtype, std::int64_t rows, int seed) {
  return {numbers(dtype, {rows, 3}, seed), numbers(dtype, {rows, 2}, seed + 100)};
}

TEST(TrainingSession, Steps_AgreeWithTheInterpreter) {
  const DType dtype = DType::f64;
  const TrainingSpec spec = network(dtype, std::make_shared<AdamW>(AdamW::Settings{.rate = 0.05}));
  TrainingSession session(spec, Target::cpu(), {}, start(dtype));

  std::vector<Tensor> parameters = start(dtype);
  std::vector<Tensor> state;
  for (const Tensor& parameter : parameters) {
    for (int k = 0; k < 2; ++k) {
      state.emplace_back(
          dtype, std::vector<std::int64_t>(parameter.sizes().begin(), parameter.sizes().end()));
    }
  }
  // Sizes alternate, so that two plans share the parameters.
  for (std::int64_t count = 1; count <= 6; ++count) {
    const std::int64_t rows = count % 2 == 1 ? 5 : 2;
    const std::vector<Tensor> data = batch(dtype, rows, static_cast<int>(count));
    const Program program = step_program(session.prepared({{"B", rows}}));
    std::vector<Tensor> inputs{data[0], parameters[0], parameters[1], parameters[2], data[1]};
    inputs.insert(inputs.end(), state.begin(), state.end());
    inputs.push_back(Tensor::scalar<std::int64_t>(count));
    const std::vector<Tensor> want = interpret(program, inputs);
    for (std::size_t i = 0; i < 3; ++i) parameters[i] = want[1 + i];
    for (std::size_t i = 0; i < 6; ++i) state[i] = want[4 + i];

    const double loss = session.step(data);
    EXPECT_NEAR(loss, want[0].to_doubles()[0], 1e-12);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(near(session.parameters()[i], parameters[i], {0, 1e-12}));
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_TRUE(near(session.state()[i][k], state[2 * i + k], {0, 1e-12}));
      }
    }
    EXPECT_EQ(session.count(), count);
  }
  EXPECT_EQ(session.plan({{"B", 5}}).fallbacks(), 0u);
}

// The same training by the direct program and by products with constants alone.
void expect_targets_agree(DType dtype, const std::shared_ptr<const Optimizer>& optimizer,
                          double of_largest) {
  const Target targets[] = {Target::cpu(), Target::matmul_only()};
  std::vector<TrainingSession> sessions;
  for (const Target& target : targets) {
    sessions.emplace_back(network(dtype, optimizer), target, Passes::for_target(target),
                          start(dtype));
  }
  for (int i = 0; i < 30; ++i) {
    const std::vector<Tensor> data = batch(dtype, i % 3 == 2 ? 3 : 8, i);
    for (TrainingSession& session : sessions) session.step(data);
  }
  const Coverage& coverage = sessions[1].prepared({{"B", 8}}).coverage;
  EXPECT_TRUE(coverage.unsupported.empty()) << coverage.print();
  EXPECT_GT(coverage.count(NodeFate::rewritten), 0);
  EXPECT_EQ(sessions[1].plan({{"B", 8}}).fallbacks(), 0u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(near(sessions[1].parameters()[i], sessions[0].parameters()[i], {0, of_largest}));
  }
}

TEST(TrainingSession, MatmulOnlyStep_AgreesWithTheDirectOne) {
  expect_targets_agree(DType::f32,
                       std::make_shared<SGD>(SGD::Settings{.rate = 0.05, .momentum = 0.9}), 1e-5);
  expect_targets_agree(DType::f64, std::make_shared<AdamW>(AdamW::Settings{.rate = 0.01}), 1e-11);
}

TEST(TrainingSession, PlainUpdates_AreWrittenInPlace) {
  TrainingSession session(network(DType::f32, std::make_shared<SGD>(SGD::Settings{.rate = 0.1})),
                          Target::cpu(), {}, start(DType::f32));
  EXPECT_EQ(session.plan({{"B", 4}}).commit_copies(), 0u) << session.plan({{"B", 4}}).print();
}

TEST(TrainingSession, TwoRuns_AreBitEqual) {
  const auto train = [] {
    TrainingSession session(
        network(DType::f32, std::make_shared<SGD>(SGD::Settings{.rate = 0.1, .momentum = 0.9})),
        Target::cpu(), {}, start(DType::f32));
    for (int i = 0; i < 10; ++i) session.step(batch(DType::f32, 4, i));
    return std::vector<Tensor>(session.parameters().begin(), session.parameters().end());
  };
  EXPECT_EQ(train(), train());
}

TEST(TrainingSession, Loss_FallsOverManySteps) {
  TrainingSession session(network(DType::f32, std::make_shared<SGD>(SGD::Settings{.rate = 0.1})),
                          Target::cpu(), {}, start(DType::f32));
  const double first = session.step(batch(DType::f32, 6, 1));
  double last = first;
  for (int i = 0; i < 200; ++i) last = session.step(batch(DType::f32, 6, 1));
  EXPECT_LT(last, first / 2);
}

TEST(TrainingSession, Restore_ResumesExactly) {
  const auto make = [] {
    return TrainingSession(network(DType::f32, std::make_shared<AdamW>(AdamW::Settings{})),
                           Target::cpu(), {}, start(DType::f32));
  };
  TrainingSession original = make();
  for (int i = 0; i < 3; ++i) original.step(batch(DType::f32, 4, i));
  TrainingSession resumed = make();
  resumed.plan({{"B", 4}});  // planned before the memory is written
  resumed.restore(original.count(), original.parameters(), original.state());
  const TrainingSession moved = [&] {
    for (int i = 3; i < 6; ++i) {
      EXPECT_EQ(original.step(batch(DType::f32, 4, i)), resumed.step(batch(DType::f32, 4, i)));
    }
    return std::move(resumed);
  }();
  EXPECT_EQ(moved.count(), 6);
  EXPECT_TRUE(std::ranges::equal(moved.parameters(), original.parameters()));
}

// log(w) . x: a w below 0 makes a NaN at the log, w = 0 an infinity there.
TrainingSpec logarithm() {
  TrainingSpec spec;
  spec.inputs = {{"w", {DType::f32, {1, 2}}}, {"x", {DType::f32, {kBatch, 2}}}};
  spec.parameters = {"w"};
  spec.loss = [](Tape&, const NamedVars& in) { return mean(in["x"] * log(in["w"] * 1.0)); };
  return with_optimizer(spec, std::make_shared<SGD>(SGD::Settings{.rate = 1, .momentum = 0.5}));
}

struct FaultCase {
  std::string name;
  std::vector<float> w;
  std::vector<float> x;
  std::string node;
};

TEST(TrainingSession, NonFiniteLoss_StopsBeforeTheUpdateAndNamesTheNode) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const FaultCase cases[] = {
      {"a NaN made by a node", {-1, 1}, {1, 1}, "forward:%1 stablehlo.log"},
      {"an infinity made by a node", {0, 1}, {1, 1}, "forward:%1 stablehlo.log"},
      {"a NaN in the data", {2, 1}, {nan, 1}, "forward:%arg1 \"x\""},
      {"a NaN in a parameter", {nan, 1}, {nan, 1}, "forward:%arg0 \"w\""},
      {"an infinity in the data", {2, 3}, {inf, 1}, "forward:%arg1 \"x\""},
  };
  for (const FaultCase& fault : cases) {
    SCOPED_TRACE(fault.name);
    TrainingSession session(logarithm(), Target::cpu(), {},
                            {Tensor::of<float>({1, 2}, {2.0F, 3.0F})});
    session.step(std::vector{Tensor::of<float>({1, 2}, {0.5F, 0.5F})});
    // The state stays, the parameters come from the case.
    const std::vector<std::vector<Tensor>> state(session.state().begin(), session.state().end());
    const std::vector<Tensor> parameters{Tensor::of<float>({1, 2}, fault.w)};
    session.restore(session.count(), parameters, state);
    try {
      session.step(std::vector{Tensor::of<float>({1, 2}, fault.x)});
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), Category::non_finite_loss);
      EXPECT_EQ(error.node(), fault.node);
      EXPECT_THAT(error.message(), HasSubstr("step 2"));
    }
    EXPECT_EQ(session.parameters()[0], parameters[0]);
    EXPECT_EQ(session.state()[0][0], state[0][0]);
    EXPECT_EQ(session.count(), 1);
  }
}

TEST(TrainingSession, LossOfSeveralElements_IsRefused) {
  TrainingSpec spec = logarithm();
  spec.loss = [](Tape&, const NamedVars& in) { return sum(in["x"] * in["w"], {0}); };
  TrainingSession session(spec, Target::cpu(), {}, {Tensor::of<float>({1, 2}, {2.0F, 3.0F})});
  EXPECT_THAT(
      [&] {
        session.step(std::vector{Tensor(DType::f32, {3, 2})});
      },
      throws(Category::invalid_loss_output, "tensor<2xf32>"));
}

TEST(TrainingSession, UnsupportedTarget_ListsTheNodesAndRunsNothing) {
  TrainingSession session(logarithm(), Target::matmul_only(), {},
                          {Tensor::of<float>({1, 2}, {2.0F, 3.0F})});
  EXPECT_FALSE(session.prepared({{"B", 3}}).coverage.unsupported.empty());
  EXPECT_THAT(
      [&] {
        session.step(std::vector{Tensor(DType::f32, {3, 2})});
      },
      throws(Category::unsupported_operator, "forward:%3 mulgrad.mean"));
  EXPECT_EQ(session.count(), 0);
}

TEST(TrainingSession, OptimizerInputsFromOutside_AreTakenPerStep) {
  TrainingSpec spec = logarithm();
  spec.state = {};
  spec.step_scalars = nullptr;
  spec.optimizer_inputs = {{"rate", {DType::f32, {}}}};
  spec.loss = [](Tape&, const NamedVars& in) { return sum(in["x"] * in["w"]); };
  spec.update = [](const UpdateArguments& in) {
    return Update{in.parameter - in.optimizer_inputs["rate"] * in.gradient, {}};
  };
  TrainingSession session(spec, Target::cpu(), {}, {Tensor::of<float>({1, 2}, {2.0F, 3.0F})});
  const std::vector<Tensor> data{Tensor::of<float>({1, 2}, {1.0F, 4.0F})};
  EXPECT_EQ(session.step(data, std::vector{Tensor::scalar(0.5F)}), 14);
  EXPECT_EQ(session.parameters()[0], Tensor::of<float>({1, 2}, {1.5F, 1.0F}));
  session.step(data, std::vector{Tensor::scalar(0.0F)});
  EXPECT_EQ(session.parameters()[0], Tensor::of<float>({1, 2}, {1.5F, 1.0F}));
  EXPECT_THAT([&] { session.step(data); },
              throws(Category::invalid_argument, "0 optimizer inputs, expected 1"));
  EXPECT_THAT([&] { session.step(data, std::vector{Tensor::scalar(1.0)}); },
              throws(Category::dtype_mismatch, "tensor<f32>"));
}

// w -= sum over rows of u x y: what u was shows in w.
TEST(TrainingSession, RandomInputs_AreAFunctionOfSeedStepAndPlace) {
  TrainingSpec spec;
  const Type rows{DType::f32, {kBatch, 2}};
  spec.inputs = {{"x", rows}, {"u", rows}, {"w", {DType::f32, {1, 2}}}, {"v", rows}, {"y", rows}};
  spec.parameters = {"w"};
  spec.random_inputs = {"v", "u"};
  spec.seed = 9;
  spec.loss = [](Tape&, const NamedVars& in) {
    return sum(in["u"] * in["x"] * in["y"] * in["w"]) + sum(in["v"]);
  };
  spec = with_optimizer(std::move(spec), std::make_shared<SGD>(SGD::Settings{.rate = 1}));
  const Tensor zeros(DType::f32, {1, 2});
  TrainingSession session(spec, Target::cpu(), {}, {zeros});
  EXPECT_EQ(session.data_inputs().size(), 2u);
  const auto step = [&](std::int64_t row_count, std::int64_t count) {
    session.restore(count - 1, std::vector{zeros}, std::vector<std::vector<Tensor>>{{}});
    const Tensor ones = Tensor::filled(Literal::one(DType::f32), {row_count, 2});
    const double loss = session.step(std::vector{ones, ones});
    std::vector<float> u(static_cast<std::size_t>(2 * row_count));
    fill_uniform(u, 9, step_stream(1, count));
    float w[2] = {0, 0};
    for (std::size_t i = 0; i < u.size(); ++i) w[i % 2] -= u[i];
    EXPECT_TRUE(near(session.parameters()[0], Tensor::of<float>({1, 2}, {w[0], w[1]}), {1e-6}));
    double v = 0;  // w was 0
    fill_uniform(u, 9, step_stream(0, count));
    for (const float value : u) v += value;
    EXPECT_NEAR(loss, v, 1e-5);
  };
  step(3, 1);
  step(3, 2);
  step(1, 2);
  step(3, 1);  // as after a resume
}

TEST(TrainingSession, NonFiniteLossWithRandomInputs_IsReplayedWithThem) {
  TrainingSpec spec;
  spec.inputs = {
      {"u", {DType::f32, {kBatch}}}, {"w", {DType::f32, {}}}, {"x", {DType::f32, {kBatch}}}};
  spec.parameters = {"w"};
  spec.random_inputs = {"u"};
  spec.loss = [](Tape&, const NamedVars& in) { return sum(log(in["x"] - in["u"] * in["w"])); };
  spec = with_optimizer(std::move(spec), std::make_shared<SGD>(SGD::Settings{.rate = 1}));
  TrainingSession session(spec, Target::cpu(), {}, {Tensor::scalar(1.0F)});
  EXPECT_THAT(
      [&] {
        session.step(std::vector{Tensor::of<float>({2}, {0, 0})});
      },
      throws(Category::non_finite_loss, "first value"));
}

TEST(TrainingSession, WrongParameters_AreNamed) {
  const auto make = [](std::vector<Tensor> parameters) {
    TrainingSession(logarithm(), Target::cpu(), {}, std::move(parameters));
  };
  EXPECT_THAT([&] { make({}); }, throws(Category::invalid_argument, "0 parameters, expected 1"));
  EXPECT_THAT(
      [&] {
        make({Tensor(DType::f64, {1, 2})});
      },
      throws(Category::dtype_mismatch, "tensor<1x2xf32>"));
  EXPECT_THAT(
      [&] {
        make({Tensor(DType::f32, {2, 2})});
      },
      throws(Category::shape_mismatch, "tensor<1x2xf32>"));
}

TEST(InferBindings, Sizes_GiveTheSymbols) {
  const std::vector<DeclaredInput> declared{{"a", {DType::f32, {Dim(3) * kBatch, 2}}},
                                            {"b", {DType::i32, {kBatch, Dim::symbol("T")}}}};
  EXPECT_EQ(
      infer_bindings(declared, std::vector{Tensor(DType::f32, {6, 2}), Tensor(DType::i32, {2, 5})}),
      (Bindings{{"B", 2}, {"T", 5}}));
  const auto infer = [&](Tensor a, Tensor b) {
    return [&declared, a, b] { infer_bindings(declared, std::vector{a, b}); };
  };
  EXPECT_THAT(infer(Tensor(DType::f32, {6, 2}), Tensor(DType::i32, {3, 5})),
              throws(Category::symbolic_shape_mismatch, "tensor<[B]x[T]xi32>"));
  EXPECT_THAT(infer(Tensor(DType::f32, {6, 3}), Tensor(DType::i32, {2, 5})),
              throws(Category::symbolic_shape_mismatch, "tensor<[3*B]x2xf32>"));
  EXPECT_THAT(infer(Tensor(DType::f32, {6}), Tensor(DType::i32, {2, 5})),
              throws(Category::shape_mismatch, "tensor<6xf32>"));
  EXPECT_THAT(infer(Tensor(DType::f32, {6, 2}), Tensor(DType::f32, {2, 5})),
              throws(Category::dtype_mismatch, "tensor<2x5xf32>"));
  EXPECT_THAT([&] { infer_bindings(declared, {}); },
              throws(Category::invalid_argument, "expected 2"));
}

TEST(CpuFunction, EverySize_IsCompiledForTheTarget) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {kBatch, 2}}));
  builder.output("y", sum(x * x, {1}).id());
  const Program program = builder.finish();
  CpuFunction function(program, Target::cpu(), {});
  EXPECT_EQ(function.run(std::vector{Tensor::of<float>({1, 2}, {3.0F, 4.0F})})[0],
            Tensor::of<float>({1}, {25.0F}));
  EXPECT_EQ(function.run(std::vector{Tensor::of<float>({2, 2}, {1.0F, 2.0F, 0.0F, 3.0F})})[0],
            Tensor::of<float>({2}, {5.0F, 9.0F}));
  CpuFunction refused(program, Target::matmul_only(), {});
  EXPECT_THAT(
      [&] {
        refused.run(std::vector{Tensor(DType::f32, {2, 2})});
      },
      throws(Category::unsupported_operator, "main:%1 stablehlo.reduce"));
}

}  // namespace
}  // namespace mulgrad
