#include "lowering/training_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/interpreter.h"
#include "core/text.h"
#include "lowering/cleaning.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "tests/support/errors.h"
#include "tests/support/step_machine.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::throws;

Passes both_passes() { return {{expand_mean()}, {expand_mean_derivative()}, {}}; }

using Machine = testing::StepMachine;

Type matrix(std::int64_t rows, std::int64_t columns, DType dtype = DType::f64) {
  return {dtype, {rows, columns}};
}

Var rate_times(const UpdateArguments& arguments) {
  return arguments.optimizer_inputs["rate"] * arguments.gradient;
}

// mean((x@w - y)^2), x 3x2, w 2x4, y 3x4, and perhaps + b 3x4.
TrainingSpec reference(KeepDims keep, bool with_bias) {
  TrainingSpec spec;
  spec.inputs = {{"x", matrix(3, 2)}, {"w", matrix(2, 4)}, {"y", matrix(3, 4)}};
  spec.parameters = {"w"};
  if (with_bias) {
    spec.inputs.push_back({"b", matrix(3, 4)});
    spec.parameters.emplace_back("b");
  }
  spec.loss = [keep, with_bias](Tape&, const NamedVars& in) {
    Var r = matmul(in["x"], in["w"]) - in["y"];
    if (with_bias) r = r + in["b"];
    return mean(r * r, {0, 1}, keep);
  };
  spec.optimizer_inputs = {{"rate", {DType::f64, {}}}};
  spec.update = [](const UpdateArguments& arguments) {
    return Update{arguments.parameter - rate_times(arguments), {}};
  };
  return spec;
}

struct Data {
  std::vector<double> x{0.5, -1.25, 2, 0.75, -0.5, 1.5};
  std::vector<double> w{1, -0.5, 0.25, 2, -1.5, 0.75, 1.25, -2};
  std::vector<double> y{0.1, 0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 1.0, 1.1, -1.2};
  std::vector<double> b{0.3, -0.1, 0.2, 0.5, 0.4, -0.6, 0.1, 0.9, -0.7, 0.8, 0.05, 0.15};
};

// By plain loops: the loss, 2 x^T r / 12, and 2 r / 12.
struct Expected {
  double loss = 0;
  std::vector<double> dw = std::vector<double>(8);
  std::vector<double> db = std::vector<double>(12);

  explicit Expected(const Data& data, bool with_bias) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        double r = (with_bias ? data.b[i * 4 + j] : 0) - data.y[i * 4 + j];
        for (std::size_t k = 0; k < 2; ++k) r += data.x[i * 2 + k] * data.w[k * 4 + j];
        loss += r * r / 12;
        db[i * 4 + j] = 2 * r / 12;
        for (std::size_t k = 0; k < 2; ++k) dw[k * 4 + j] += 2 * data.x[i * 2 + k] * r / 12;
      }
    }
  }
};

bool equal_to(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = got.to_doubles();
  if (values.size() != want.size()) return false;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::fabs(values[i] - want[i]) > 1e-12 * std::fabs(want[i])) return false;
  }
  return true;
}

std::vector<double> stepped(const std::vector<double>& parameter, const std::vector<double>& d,
                            double rate) {
  std::vector<double> result;
  for (std::size_t i = 0; i < d.size(); ++i) result.push_back(parameter[i] - rate * d[i]);
  return result;
}

class ReferenceStep : public ::testing::TestWithParam<std::tuple<KeepDims, bool>> {};

TEST_P(ReferenceStep, BothPasses_CompileAndRun) {
  const auto [keep, with_bias] = GetParam();
  Machine machine;
  const auto compiled = machine.compile(reference(keep, with_bias), both_passes());
  EXPECT_TRUE(compiled.step.coverage.unsupported.empty());
  EXPECT_GT(compiled.step.coverage.count(NodeFate::rewritten), 0);
  const Data data;
  const Expected expected(data, with_bias);
  machine.set("forward", "x", Tensor::of<double>({3, 2}, data.x));
  machine.set("forward", "w", Tensor::of<double>({2, 4}, data.w));
  machine.set("forward", "y", Tensor::of<double>({3, 4}, data.y));
  if (with_bias) machine.set("forward", "b", Tensor::of<double>({3, 4}, data.b));
  machine.run("forward");
  const TrainingStep& step = compiled.step;
  const auto output = [&](std::size_t artifact, std::size_t index) -> const Tensor& {
    return machine.memory.at(compiled.lowered[artifact].output(index).index);
  };
  const Program& forward = step.forward().program;
  EXPECT_TRUE(equal_to(output(0, 0), {expected.loss}));

  machine.set("derivative", "loss",
              Tensor::filled(Literal::one(DType::f64), output(0, 0).rank() == 2
                                                           ? std::vector<std::int64_t>{1, 1}
                                                           : std::vector<std::int64_t>{}));
  for (std::size_t i = 0; i < forward.outputs().size(); ++i) {
    const Output& captured = forward.outputs()[i];
    if (captured.role == OutputRole::capture) {
      machine.set("derivative", captured.name, output(0, i));
    }
  }
  machine.run("derivative");
  EXPECT_TRUE(equal_to(output(1, 0), expected.dw));
  if (with_bias) {
    EXPECT_TRUE(equal_to(output(1, 1), expected.db));
  }

  const auto updated = [&](double rate) {
    const std::string& update = step.update(0).name;
    machine.set(update, "parameter", Tensor::of<double>({2, 4}, data.w));
    machine.set(update, "gradient", output(1, 0));
    machine.set(update, "rate", Tensor::scalar(rate));
    machine.run(update);
    return output(step.update_of[0], 0);
  };
  EXPECT_TRUE(equal_to(updated(0.1), stepped(data.w, expected.dw, 0.1)));
  EXPECT_FALSE(equal_to(updated(0.2), stepped(data.w, expected.dw, 0.1))) << "the rate is doubled";
}

TEST_P(ReferenceStep, StepProgram_ComputesTheWholeStep) {
  const auto [keep, with_bias] = GetParam();
  Machine machine;
  const auto compiled = machine.compile(reference(keep, with_bias), both_passes());
  const Program program = step_program(compiled.step);
  verify(program);
  const Data data;
  const Expected expected(data, with_bias);
  std::vector<Tensor> inputs{Tensor::of<double>({3, 2}, data.x), Tensor::of<double>({2, 4}, data.w),
                             Tensor::of<double>({3, 4}, data.y)};
  if (with_bias) inputs.push_back(Tensor::of<double>({3, 4}, data.b));
  inputs.push_back(Tensor::scalar(0.1));
  const std::vector<Tensor> got = interpret(program, inputs);
  EXPECT_TRUE(equal_to(got[0], {expected.loss}));
  EXPECT_TRUE(equal_to(got[1], stepped(data.w, expected.dw, 0.1)));
  if (with_bias) {
    EXPECT_TRUE(equal_to(got[2], stepped(data.b, expected.db, 0.1)));
  }
}

// The nodes that a machine without mean, broadcast_in_dim and divide lacks, by slots left alone.
TEST_P(ReferenceStep, MissingPasses_ListEveryNodeAndCallNoHandler) {
  const auto [keep, with_bias] = GetParam();
  const TrainingSpec spec = reference(keep, with_bias);
  const auto message = [&](const Passes& passes) -> std::string {
    Machine machine;
    try {
      machine.compile(spec, passes);
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), Category::unsupported_operator);
      EXPECT_EQ(machine.handler_calls, 0);
      return error.what();
    }
    ADD_FAILURE() << "expected an error";
    return "";
  };
  const std::string mean_node = "forward:%" + std::to_string(with_bias ? 4 : 3) + " mulgrad.mean";
  const std::string none = message({});
  EXPECT_THAT(none, HasSubstr("3 unsupported nodes"));
  EXPECT_THAT(none, HasSubstr(mean_node));
  EXPECT_THAT(none, HasSubstr("stablehlo.broadcast_in_dim"));
  EXPECT_THAT(none, HasSubstr("stablehlo.divide"));
  const std::string forward_only = message({{expand_mean()}, {}, {}});
  EXPECT_THAT(forward_only, Not(HasSubstr("mulgrad.mean")));
  EXPECT_THAT(forward_only, HasSubstr("2 unsupported nodes"));
  EXPECT_THAT(forward_only, HasSubstr("derivative:%"));
  const std::string derivative_only = message({{}, {expand_mean_derivative()}, {}});
  EXPECT_THAT(derivative_only, HasSubstr("1 unsupported node:"));
  EXPECT_THAT(derivative_only, HasSubstr(mean_node));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ReferenceStep,
    ::testing::Combine(::testing::Values(KeepDims::no, KeepDims::yes), ::testing::Bool()),
    [](const auto& info) {
      return std::string(std::get<0>(info.param) == KeepDims::yes ? "keepdims" : "dropped") +
             (std::get<1>(info.param) ? "_bias" : "");
    });

TEST(TrainingStep, OneErrorListsTheNodesOfEveryArtifact) {
  TrainingSpec spec = reference(KeepDims::no, false);
  spec.update = [](const UpdateArguments& arguments) {
    return Update{arguments.parameter - rate_times(arguments) / 2.0, {}};
  };
  Machine machine;
  EXPECT_THAT([&] { machine.compile(spec, {}); },
              throws(Category::unsupported_operator, "forward:%3 mulgrad.mean"));
  EXPECT_THAT([&] { machine.compile(spec, {}); },
              throws(Category::unsupported_operator, "\n  derivative:%"));
  EXPECT_THAT([&] { machine.compile(spec, {}); },
              throws(Category::unsupported_operator, "\n  update.2x4xf64:%1 stablehlo.divide"));
  EXPECT_EQ(machine.handler_calls, 0);
}

TEST(TrainingStep, RegistryWithoutFillOrReshape_ListsTheNodes) {
  for (const std::vector<OpKind>& left_out : std::vector<std::vector<OpKind>>{
           {OpKind::Fill}, {OpKind::Reshape}, {OpKind::Fill, OpKind::Reshape}}) {
    Machine machine(left_out);
    try {
      machine.compile(reference(KeepDims::no, false), both_passes());
      FAIL() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), Category::unsupported_operator);
      EXPECT_THAT(error.what(), HasSubstr("forward:%3 mulgrad.mean"));
      EXPECT_THAT(error.what(), HasSubstr("derivative:%"));
    }
    EXPECT_EQ(machine.handler_calls, 0);
  }
}

TEST(TrainingStep, PassInASlotThatItDoesNotAccept_IsRefused) {
  Machine machine;
  EXPECT_THROW(
      try {
        machine.compile(reference(KeepDims::no, false), {{expand_mean_derivative()}, {}, {}});
      } catch (const Error& error) {
        EXPECT_EQ(error.category(), Category::expansion_contract_violation);
        EXPECT_THAT(error.what(), HasSubstr("expand_mean_derivative"));
        throw;
      },
      Error);
  EXPECT_EQ(machine.handler_calls, 0);
}

TEST(TrainingStep, EqualParameterTypes_ShareTheUpdate) {
  TrainingSpec spec;
  spec.inputs = {{"a", matrix(2, 2)}, {"b", matrix(2, 2)}, {"c", matrix(1, 2)}};
  spec.parameters = {"a", "b", "c"};
  spec.loss = [](Tape&, const NamedVars& in) {
    return mean(matmul(in["c"], matmul(in["a"], in["b"])));
  };
  int traced = 0;
  spec.update = [&](const UpdateArguments& arguments) {
    ++traced;
    return Update{arguments.parameter - arguments.gradient * 0.5, {}};
  };
  Machine machine;
  const auto compiled = machine.compile(spec, both_passes());
  EXPECT_EQ(traced, 2);
  EXPECT_THAT(compiled.step.update_of, ElementsAre(2, 2, 3));
  EXPECT_EQ(compiled.step.artifacts.size(), 4u);
  EXPECT_EQ(compiled.step.artifacts[2].multiplicity, 2);
  EXPECT_EQ(compiled.step.update(0).name, "update.2x2xf64");
  EXPECT_EQ(machine.code["update.2x2xf64"].size(), 2u);
}

TEST(TrainingStep, SameInputs_GiveEqualProgramsAndLabels) {
  const TrainingSpec spec = reference(KeepDims::no, true);
  Machine a, b;
  const auto first = a.compile(spec, both_passes());
  const auto second = b.compile(spec, both_passes());
  EXPECT_EQ(step_program(first.step), step_program(second.step));
  for (std::size_t i = 0; i < first.step.artifacts.size(); ++i) {
    const Artifact& x = first.step.artifacts[i].artifact;
    const Artifact& y = second.step.artifacts[i].artifact;
    EXPECT_EQ(x.program, y.program);
    for (std::int64_t n = 0; n < std::ssize(x.program.nodes()); ++n) {
      EXPECT_EQ(x.label(n), y.label(n));
    }
  }
}

// What a loss may be.
TrainingSpec spec_of(std::function<Var(const NamedVars&)> loss, Type a = matrix(2, 2)) {
  TrainingSpec spec;
  spec.inputs = {{"a", a}, {"b", a}, {"u", matrix(2, 2)}};
  spec.parameters = {"a", "b"};
  spec.loss = [loss](Tape&, const NamedVars& in) { return loss(in); };
  spec.update = [](const UpdateArguments& arguments) {
    return Update{arguments.parameter - arguments.gradient, {}};
  };
  return spec;
}

TrainingStep prepare(const TrainingSpec& spec, const Passes& passes = {},
                     const Bindings& bindings = {}) {
  return prepare_training_step(spec, bindings, Target::cpu(), {}, passes);
}

TEST(TrainingStep, IgnoredInput_Compiles) {
  const TrainingStep step =
      prepare(spec_of([](const auto& in) { return mean(in["a"] * in["b"]); }));
  EXPECT_EQ(step.forward().program.inputs().size(), 3u);
}

TEST(TrainingStep, IgnoredParameter_IsNamedOrGetsZero) {
  TrainingSpec spec = spec_of([](const auto& in) { return mean(in["a"] * in["u"]); });
  EXPECT_THAT(
      [&] { prepare(spec); },
      ::testing::Throws<Error>(::testing::AllOf(
          ::testing::Property("category", &Error::category, Category::missing_derivative_behavior),
          ::testing::Property("node", &Error::node, HasSubstr("\"b\"")))));
  spec.unused = Unused::zero;
  const Program derivative = prepare(spec).derivative().program;
  const ValueId gradient = derivative.outputs()[1].value;
  ASSERT_TRUE(gradient.is_node());
  EXPECT_EQ(derivative.node(gradient).op, (Op{Fill{Literal::zero(DType::f64), {2, 2}}}));
}

TEST(TrainingStep, OneValueForTwoGradients_HasTwoEntries) {
  const Program derivative =
      prepare(spec_of([](const auto& in) { return mean(in["a"] + in["b"]); })).derivative().program;
  ASSERT_EQ(derivative.outputs().size(), 2u);
  EXPECT_EQ(derivative.outputs()[0].name, "grad.a");
  EXPECT_EQ(derivative.outputs()[1].name, "grad.b");
  EXPECT_EQ(derivative.outputs()[0].value, derivative.outputs()[1].value);
}

TEST(TrainingStep, LossThatIsTheParameter_HasTheSeedAsGradient) {
  TrainingSpec spec = spec_of([](const auto& in) { return in["a"]; });
  spec.unused = Unused::zero;
  const Program derivative = prepare(spec).derivative().program;
  EXPECT_EQ(derivative.outputs()[0].value, ValueId::input(0));
  EXPECT_EQ(derivative.inputs()[0].role, InputRole::seed);
  verify(step_program(prepare(spec)));
}

TEST(TrainingStep, LossOfRankOne_HasASeedOfItsType) {
  const TrainingStep step =
      prepare(spec_of([](const auto& in) { return sum(in["a"] * in["b"], {0}); }));
  EXPECT_EQ(step.derivative().program.inputs()[0].type, (Type{DType::f64, {2}}));
}

TEST(TrainingStep, CapturesOfAForwardPass_KeepTheirOrder) {
  // A = (x+x)+x, M = mean(u) keepdims, B = u-M, L = mean(A*B): the pass replaces M, which lies
  // before a captured value.
  TrainingSpec spec;
  spec.inputs = {{"x", matrix(3, 5)}, {"u", matrix(3, 5)}};
  spec.parameters = {"x", "u"};
  spec.loss = [](Tape&, const NamedVars& in) {
    const Var a = (in["x"] + in["x"]) + in["x"];
    const Var b = in["u"] - mean(in["u"], {0, 1}, KeepDims::yes);
    return mean(a * b);
  };
  spec.update = [](const UpdateArguments& arguments) {
    return Update{arguments.parameter - arguments.gradient, {}};
  };
  const Program plain = step_program(prepare(spec));
  const Program rewritten = step_program(prepare(spec, {{expand_mean()}, {}, {}}));
  std::vector<Tensor> inputs;
  for (int k = 0; k < 2; ++k) {
    std::vector<double> values;
    for (int i = 0; i < 15; ++i) values.push_back(std::sin(i + 7 * k));
    inputs.push_back(Tensor::of<double>({3, 5}, values));
  }
  const auto want = interpret(plain, inputs);
  const auto got = interpret(rewritten, inputs);
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].sizes().size(), want[i].sizes().size());
    const auto g = got[i].to_doubles();
    const auto w = want[i].to_doubles();
    for (std::size_t k = 0; k < w.size(); ++k) EXPECT_NEAR(g[k], w[k], 1e-14);
  }
}

TEST(TrainingStep, SymbolicBatch_IsBoundBeforeItIsDerived) {
  TrainingSpec spec;
  spec.inputs = {{"x", {DType::f32, {Dim::symbol("B"), 4}}}, {"w", matrix(4, 3, DType::f32)}};
  spec.parameters = {"w"};
  spec.loss = [](Tape&, const NamedVars& in) { return mean(matmul(in["x"], in["w"])); };
  spec.update = [](const UpdateArguments& arguments) {
    return Update{arguments.parameter - arguments.gradient, {}};
  };
  EXPECT_EQ(prepare(spec, {}, {{"B", 7}}).forward().program.inputs()[0].type,
            matrix(7, 4, DType::f32));
  EXPECT_THAT([&] { prepare(spec); }, throws(Category::invalid_argument, "B"));
}

TEST(TrainingStep, OptimizerInOneCall_GivesTheWholeStep) {
  TrainingSpec spec = reference(KeepDims::no, true);
  spec = with_optimizer(spec, std::make_shared<AdamW>(AdamW::Settings{}));
  const TrainingStep step = prepare(spec);
  ASSERT_NE(step.step_scalars(), nullptr);
  const Program program = step_program(step);
  std::vector<std::string> inputs, outputs;
  for (const Input& input : program.inputs()) inputs.push_back(input.name);
  for (const Output& output : program.outputs()) outputs.push_back(output.name);
  EXPECT_THAT(inputs, ElementsAre("x", "w", "y", "b", "w.m", "w.v", "b.m", "b.v", "count"));
  EXPECT_THAT(outputs,
              ElementsAre("loss", "new.w", "new.b", "new.w.m", "new.w.v", "new.b.m", "new.b.v"));
}

TEST(TrainingStep, PassesOfTheUpdateSlot_RunOnTheStepScalarsToo) {
  const TrainingSpec spec =
      with_optimizer(reference(KeepDims::no, true), std::make_shared<AdamW>(AdamW::Settings{}));
  const TrainingStep step = prepare(spec, {{}, {}, {dead_code()}});
  for (const CoverageArtifact& entry : step.artifacts) {
    const bool update = entry.artifact.name != "forward" && entry.artifact.name != "derivative";
    EXPECT_EQ(entry.passes.size(), update ? 1u : 0u) << entry.artifact.name;
  }
  EXPECT_EQ(step.artifacts.back().artifact.name, "step_scalars");
}

TEST(TrainingStep, NullOptimizer_IsABadDeclaration) {
  EXPECT_THAT([] { with_optimizer(reference(KeepDims::no, true), nullptr); },
              throws(Category::invalid_training_declaration, "no optimizer"));
}

struct BadSpec {
  std::string name;
  Category category;
  std::string text;
  std::function<void(TrainingSpec&)> change;
};

TEST(TrainingStep, BadDeclarations_AreCategorised) {
  using Spec = TrainingSpec;
  const auto update_with = [](std::function<Update(const UpdateArguments&)> update) {
    return [update](Spec& spec) { spec.update = update; };
  };
  Tape elsewhere;
  const Var stranger = elsewhere.input("z", {DType::f64, {}});
  const BadSpec cases[] = {
      {"no inputs", Category::invalid_training_declaration, "no inputs",
       [](Spec& s) { s.inputs.clear(); }},
      {"no parameters", Category::invalid_training_declaration, "no parameters",
       [](Spec& s) { s.parameters.clear(); }},
      {"no loss", Category::invalid_training_declaration, "no loss",
       [](Spec& s) { s.loss = nullptr; }},
      {"no update", Category::invalid_training_declaration, "no update",
       [](Spec& s) { s.update = nullptr; }},
      {"undeclared parameter", Category::invalid_training_declaration, "\"v\"",
       [](Spec& s) { s.parameters = {"v"}; }},
      {"parameter listed twice", Category::invalid_training_declaration, "\"w\"",
       [](Spec& s) {
         s.parameters = {"w", "w"};
       }},
      {"input declared twice", Category::invalid_training_declaration, "\"x\"",
       [](Spec& s) {
         s.inputs.push_back({"x", matrix(1, 1)});
       }},
      {"symbolic parameter", Category::invalid_training_declaration, "symbolic",
       [](Spec& s) { s.inputs[1].type.shape[0] = Dim::symbol("K"); }},
      {"optimizer input named as an input", Category::invalid_training_declaration, "\"y\"",
       [](Spec& s) {
         s.optimizer_inputs.push_back({"y", {DType::f64, {}}});
       }},
      {"undeclared random input", Category::invalid_training_declaration, "\"v\" is no declared",
       [](Spec& s) { s.random_inputs = {"v"}; }},
      {"random input of f64", Category::invalid_training_declaration, "expected f32",
       [](Spec& s) { s.random_inputs = {"x"}; }},
      {"random input listed twice", Category::invalid_training_declaration, "listed twice",
       [](Spec& s) {
         s.inputs.push_back({"u", {DType::f32, {}}});
         s.random_inputs = {"u", "u"};
       }},
      {"loss of an undeclared input", Category::invalid_loss_signature, "\"q\"",
       [](Spec& s) { s.loss = [](Tape&, const NamedVars& in) { return in["q"]; }; }},
      {"loss of another tape", Category::invalid_loss_output, "tape",
       [&](Spec& s) { s.loss = [stranger](Tape&, const NamedVars&) { return stranger; }; }},
      {"loss of i1", Category::invalid_loss_output, "float dtype",
       [](Spec& s) { s.loss = [](Tape&, const NamedVars& in) { return is_finite(in["w"]); }; }},
      {"optimizer input missing", Category::invalid_update_signature, "\"rate\"",
       [](Spec& s) { s.optimizer_inputs.clear(); }},
      {"optimizer input named gradient", Category::invalid_update_signature, "\"gradient\"",
       [](Spec& s) {
         s.optimizer_inputs.push_back({"gradient", {DType::f64, {}}});
       }},
      {"optimizer input named parameter", Category::invalid_update_signature, "\"parameter\"",
       [](Spec& s) {
         s.optimizer_inputs.push_back({"parameter", {DType::f64, {}}});
       }},
      {"state named as an optimizer input", Category::invalid_update_signature, "\"rate\"",
       [](Spec& s) { s.state = {"rate"}; }},
      {"step scalar missing", Category::invalid_update_signature, "\"rate\" is missing",
       [](Spec& s) { s.step_scalars = [](Var) { return std::vector<NamedVar>{}; }; }},
      {"step scalar unexpected", Category::invalid_update_signature, "\"speed\"",
       [](Spec& s) {
         s.step_scalars = [](Var count) {
           const Var value = convert(count, DType::f64);
           return std::vector<NamedVar>{{"rate", value}, {"speed", value}};
         };
       }},
      {"step scalar of another type", Category::invalid_update_signature, "tensor<i64>",
       [](Spec& s) {
         s.step_scalars = [](Var count) { return std::vector<NamedVar>{{"rate", count}}; };
       }},
      {"update of another type", Category::invalid_update_output, "tensor<2x4xi1>",
       update_with([](const UpdateArguments& a) {
         return Update{is_finite(a.parameter), {}};
       })},
      {"update of another tape", Category::invalid_update_output, "tape",
       update_with([stranger](const UpdateArguments&) {
         return Update{stranger, {}};
       })},
      {"too many states", Category::invalid_update_output, "1 states, expected 0",
       update_with([](const UpdateArguments& a) {
         return Update{a.parameter, {a.gradient}};
       })},
      {"state of another type", Category::invalid_update_output, "state \"m\"",
       [](Spec& s) {
         s.state = {"m"};
         s.update = [](const UpdateArguments& a) {
           return Update{a.parameter - a.gradient, {is_finite(a.state["m"])}};
         };
       }},
  };
  for (const BadSpec& bad : cases) {
    SCOPED_TRACE(bad.name);
    TrainingSpec spec = reference(KeepDims::no, false);
    bad.change(spec);
    EXPECT_THAT([&] { prepare(spec); }, throws(bad.category, bad.text));
  }
}

TEST(TrainingStep, RateThatBroadcastsTheUpdate_IsRefused) {
  TrainingSpec spec = spec_of([](const auto& in) { return mean(in["a"] * in["b"]); }, matrix(1, 4));
  spec.optimizer_inputs = {{"rate", matrix(2, 1)}};
  spec.update = [](const UpdateArguments& arguments) {
    return Update{arguments.parameter - rate_times(arguments), {}};
  };
  EXPECT_THAT([&] { prepare(spec); },
              throws(Category::invalid_update_output, "tensor<2x4xf64>, expected tensor<1x4xf64>"));
}

}  // namespace
}  // namespace mulgrad
