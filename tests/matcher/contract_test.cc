// The compile contract: what a training step promises about passes that it did not write itself.
//
// Where each row of the contract is tested. "Step" is tests/lowering/training_step_test.cc, "PM" is
// tests/core/pass_manager_test.cc; no prefix: this file.
//
//   registry without mean, reduce, broadcast, divide   Step ReferenceStep.BothPasses_CompileAndRun
//   no passes, one slot's passes                       Step ReferenceStep.MissingPasses_*
//   a pass in a slot that it does not accept           PassInEverySlot_IsHeldToWhatItAccepts
//   registry without fill, reshape, both               RegistryWithoutFillOrReshape_ListsEveryNode
//   a loss that ignores a declared input               Step TrainingStep.IgnoredInput_Compiles
//   a parameter that the loss ignores                  Step TrainingStep.IgnoredParameter_*
//   loss mean(a+b)                                     OneValueForTwoGradients_IsLoweredOnce
//   loss == parameter                                  Step TrainingStep.LossThatIsTheParameter_*
//   A = (x+x)+x, captures as sets in canonical order   CapturesOfAForwardPass_*,
//                                                      CapturesListedInAnotherOrder_Compile
//   no captures; one residual read twice               NoCaptures_*, ResidualReadTwice_*
//   derive the lowered forward, derive a derivative    LoweredForward_IsDerivedTwice
//   optimizer input missing, unexpected, misnamed      Step TrainingStep.BadDeclarations_*
//   update result not typed as its parameter           Step TrainingStep.RateThatBroadcasts_*
//   loss of shape [3]; loss that is no traced value    LossOfRankOne_CompilesAndRuns,
//                                                      Step TrainingStep.BadDeclarations_*
//   parameter not declared, twice, none; no inputs     Step TrainingStep.BadDeclarations_*
//   a pass that breaks the interface                   BrokenInterfaces_NameThePassAndStop
//   a pass that throws something foreign               ForeignException_KeepsTheCause
//   its own Error                                      OwnError_PassesUnchanged
//   same passes, same inputs, twice                    Step TrainingStep.SameInputs_*
//   equal parameter types                              Step TrainingStep.EqualParameterTypes_*
//   sets, seeds of one gradient, properties, regions   PM PassManager.*
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/text.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "tests/support/edit.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/rewrite_check.h"
#include "tests/support/step_machine.h"

namespace mulgrad {
namespace {

using testing::Edit;
using testing::editing_pass;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::pass_of;
using testing::StepMachine;

const Type kMatrix{DType::f64, {2, 3}};

TrainingSpec spec_of(std::function<Var(const NamedVars&)> loss, Type type = kMatrix) {
  TrainingSpec spec;
  spec.inputs = {{"a", type}, {"b", type}, {"u", type}};
  spec.parameters = {"a", "b"};
  spec.loss = [loss = std::move(loss)](Tape&, const NamedVars& in) { return loss(in); };
  spec.optimizer_inputs = {{"rate", {DType::f64, {}}}};
  spec.update = [](const UpdateArguments& in) {
    return Update{in.parameter - in.optimizer_inputs["rate"] * in.gradient, {}};
  };
  return spec;
}

// mean(a * b): the forward program gives "loss", c0 and c1, the derivative grad.a and grad.b.
TrainingSpec product_spec() {
  return spec_of([](const auto& in) { return mean(in["a"] * in["b"], {0, 1}, KeepDims::yes); });
}

Passes both_passes() { return {{expand_mean()}, {expand_mean_derivative()}, {}}; }

std::vector<Pass>& passes_of(Passes& passes, Slot slot) {
  switch (slot) {
    case Slot::forward:
      return passes.forward;
    case Slot::derivative:
      return passes.derivative;
    default:
      return passes.update;
  }
}

// The passes that make a step compile, with `wrong` at position 1 of the slot, a pass behind it,
// and a pass at the end of every other slot; `ran` collects the slots whose last pass ran.
Passes around(const Pass& wrong, Slot slot, std::set<Slot>& ran) {
  Passes passes = both_passes();
  if (slot == Slot::update) {
    passes.update.push_back(pass_of("first", slot, [](const Program& program) { return program; }));
  }
  passes_of(passes, slot).push_back(wrong);
  for (const Slot each : {Slot::forward, Slot::derivative, Slot::update}) {
    passes_of(passes, each).push_back(pass_of("last", each, [&ran, each](const Program& program) {
      ran.insert(each);
      return program;
    }));
  }
  return passes;
}

// The error of compiling with `wrong` in the slot: no later pass has run and no handler either.
Error error_with(const Pass& wrong, Slot slot, const TrainingSpec& spec) {
  StepMachine machine;
  std::set<Slot> ran;
  const Error error = error_of([&] { machine.compile(spec, around(wrong, slot, ran)); });
  EXPECT_EQ(machine.handler_calls, 0);
  EXPECT_EQ(machine.registers, 0) << "values of inputs were made";
  for (const Slot each : {Slot::forward, Slot::derivative, Slot::update}) {
    EXPECT_EQ(ran.count(each), each < slot ? 1u : 0u) << to_string(each);
  }
  return error;
}

std::string place(const std::string& pass, Slot slot) {
  return "pass \"" + pass + "\" at position 1 of the " + std::string(to_string(slot)) + " slot";
}

Pass reshaping_pass(Slot slot, std::size_t output) {
  return pass_of("wrong", slot, [output](const Program& program) {
    Builder builder(program.name());
    for (const Input& input : program.inputs()) builder.input(input.name, input.type, input.role);
    for (const Node& node : program.nodes()) builder.add(node.op, node.operands);
    for (std::size_t i = 0; i < program.outputs().size(); ++i) {
      const Output& old = program.outputs()[i];
      Var value(builder, old.value);
      if (i == output) value = reshape(value, {value.shape().elements(), 1, 1});
      builder.output(old.name, value.id(), old.role);
    }
    return builder.finish();
  });
}

// The operand `from` becomes `to` in every node and output.
std::function<void(Edit&)> exchange(ValueId from, Operand to) {
  return [from, to](Edit& edit) {
    edit.operand = [from, to](Operand operand) { return operand == Operand(from) ? to : operand; };
    for (Output& output : edit.outputs) {
      if (output.value == from && !to.is_literal()) output.value = to.value();
    }
  };
}

struct Broken {
  std::string name;
  Slot slot;
  std::function<void(Edit&)> change;
  std::string message;
};

// Inputs a, b, u; outputs loss, c0, c1 | seed, c0, c1; grad.a, grad.b | parameter, gradient, rate.
TEST(Contract, BrokenInterfaces_NameThePassAndStop) {
  const Broken cases[] = {
      {"drops an input", Slot::forward, [](Edit& e) { e.inputs.pop_back(); },
       "found no input \"u\" tensor<2x3xf64> any more"},
      {"adds an input", Slot::forward,
       [](Edit& e) {
         e.inputs.push_back({"v", kMatrix});
       },
       "found a new input \"v\" tensor<2x3xf64>"},
      {"changes an input's name", Slot::forward, [](Edit& e) { e.inputs[2].name = "v"; },
       "found at input 2 input \"v\""},
      {"changes an input's type", Slot::forward,
       [](Edit& e) {
         e.inputs[2].type.shape = {3, 3};
       },
       "found at input 2 input \"u\" tensor<3x3xf64>, expected input \"u\" tensor<2x3xf64>"},
      {"drops the output", Slot::forward, [](Edit& e) { e.outputs.erase(e.outputs.begin()); },
       "expected output \"loss\""},
      {"adds an output", Slot::forward,
       [](Edit& e) {
         e.outputs.push_back({"more", ValueId::input(2)});
       },
       "output \"more\" tensor<2x3xf64>"},
      {"drops a capture", Slot::forward, [](Edit& e) { e.outputs.pop_back(); },
       "found no captured result \"c1\" tensor<2x3xf64> any more"},
      {"adds a capture", Slot::forward,
       [](Edit& e) {
         e.outputs.push_back({"c2", ValueId::input(2), OutputRole::capture});
       },
       "found a new captured result \"c2\" tensor<2x3xf64>"},
      {"makes a capture an output", Slot::forward,
       [](Edit& e) { e.outputs[2].role = OutputRole::output; }, "output \"c1\""},
      {"captures another value", Slot::forward,
       [](Edit& e) { std::swap(e.outputs[1].value, e.outputs[2].value); },
       "the output \"c0\" reads the input \"a\""},
      {"reads another input", Slot::forward, exchange(ValueId::input(1), ValueId::input(2)),
       "reads the input \"u\" tensor<2x3xf64>, expected the input \"b\" tensor<2x3xf64>"},

      {"drops a gradient", Slot::derivative, [](Edit& e) { e.outputs.pop_back(); },
       "found no output \"grad.b\" tensor<2x3xf64> any more"},
      {"adds a gradient", Slot::derivative,
       [](Edit& e) {
         e.outputs.push_back({"grad.u", e.outputs[0].value});
       },
       "found a new output \"grad.u\" tensor<2x3xf64>"},
      {"reorders the gradients", Slot::derivative,
       [](Edit& e) { std::swap(e.outputs[0], e.outputs[1]); },
       "found at output 0 output \"grad.b\""},
      {"exchanges the gradients", Slot::derivative,
       [](Edit& e) { std::swap(e.outputs[0].value, e.outputs[1].value); },
       "the output \"grad.a\" reads the capture"},
      {"adds a capture it reads", Slot::derivative,
       [](Edit& e) {
         e.inputs.push_back({"c2", kMatrix, InputRole::capture});
       },
       "found a new capture \"c2\" tensor<2x3xf64>"},
      {"drops a capture it read", Slot::derivative,
       [](Edit& e) {
         exchange(ValueId::input(2), Literal::one(DType::f64))(e);
         e.inputs.pop_back();
       },
       "found no capture \"c1\" tensor<2x3xf64> any more"},
      {"changes a capture's name", Slot::derivative, [](Edit& e) { e.inputs[2].name = "c7"; },
       "expected capture \"c1\" tensor<2x3xf64>"},
      {"adds a seed", Slot::derivative,
       [](Edit& e) {
         e.inputs.push_back({"more", kMatrix, InputRole::seed});
       },
       "seed \"more\" tensor<2x3xf64>"},
      {"makes the seed an input", Slot::derivative,
       [](Edit& e) { e.inputs[0].role = InputRole::input; },
       "found at input 0 input \"loss\" tensor<1x1xf64>, expected seed \"loss\""},
      {"detaches the seed of all gradients", Slot::derivative,
       [](Edit& e) {
         e.operand = [](Operand operand) {
           const bool is_seed = operand == Operand(ValueId::node(4));
           return is_seed ? Operand(Literal::one(DType::f64)) : operand;
         };
       },
       "does not depend on the seed \"loss\" any more"},
      {"reads another forward value", Slot::derivative,
       exchange(ValueId::input(1), ValueId::input(2)), "reads the capture \"c1\""},

      {"drops an optimizer input", Slot::update,
       [](Edit& e) {
         exchange(ValueId::input(2), Literal::one(DType::f64))(e);
         e.inputs.pop_back();
       },
       "found no input \"rate\" tensor<f64> any more"},
      {"adds a result", Slot::update,
       [](Edit& e) {
         e.outputs.push_back({"more", ValueId::input(0)});
       },
       "found a new output \"more\""},
      {"exchanges optimizer input and gradient", Slot::update,
       [](Edit& e) { std::swap(e.inputs[1].name, e.inputs[2].name); },
       "found at input 1 input \"rate\""},
      {"drops the result", Slot::update, [](Edit& e) { e.outputs.clear(); },
       "found no output \"parameter\" tensor<2x3xf64> any more"},
  };
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.name);
    const Error error =
        error_with(editing_pass("wrong", broken.slot, broken.change), broken.slot, product_spec());
    EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    EXPECT_EQ(error.node(), place("wrong", broken.slot));
    EXPECT_THAT(error.message(), HasSubstr(broken.message));
  }
}

TEST(Contract, ChangedTypes_NameThePassAndStop) {
  const struct {
    Slot slot;
    std::size_t output;
    std::string message;
  } cases[] = {
      {Slot::forward, 0, "output \"loss\" tensor<1x1x1xf64>, expected output \"loss\""},
      {Slot::forward, 1, "captured result \"c0\" tensor<6x1x1xf64>, expected captured result"},
      {Slot::derivative, 1, "output \"grad.b\" tensor<6x1x1xf64>, expected output \"grad.b\""},
      {Slot::update, 0, "output \"parameter\" tensor<6x1x1xf64>, expected output \"parameter\""},
  };
  for (const auto& item : cases) {
    SCOPED_TRACE(item.message);
    const Error error =
        error_with(reshaping_pass(item.slot, item.output), item.slot, product_spec());
    EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    EXPECT_EQ(error.node(), place("wrong", item.slot));
    EXPECT_THAT(error.message(), HasSubstr(item.message));
  }
}

TEST(Contract, ForeignException_KeepsTheCause) {
  for (const Slot slot : {Slot::forward, Slot::derivative, Slot::update}) {
    SCOPED_TRACE(to_string(slot));
    const Pass thrower =
        pass_of("thrower", slot, [](const Program&) -> Program { throw std::range_error("why"); });
    const Error error = error_with(thrower, slot, product_spec());
    EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    EXPECT_EQ(error.node(), place("thrower", slot));
    EXPECT_THAT(error.message(), HasSubstr("why"));
    StepMachine machine;
    std::set<Slot> ran;
    try {
      machine.compile(product_spec(), around(thrower, slot, ran));
      FAIL() << "expected an error";
    } catch (const Error& outer) {
      EXPECT_THROW(std::rethrow_if_nested(outer), std::range_error);
    }
  }
}

TEST(Contract, OwnError_PassesUnchanged) {
  for (const Slot slot : {Slot::forward, Slot::derivative, Slot::update}) {
    SCOPED_TRACE(to_string(slot));
    const Pass refuser = pass_of("refuser", slot, [](const Program&) -> Program {
      throw Error(Category::unsupported_reduction, "not this one", "%3 mulgrad.mean");
    });
    const Error error = error_with(refuser, slot, product_spec());
    EXPECT_EQ(error.category(), Category::unsupported_reduction);
    EXPECT_EQ(error.message(), "not this one");
    EXPECT_EQ(error.node(), "%3 mulgrad.mean");
  }
}

TEST(Contract, PassInEverySlot_IsHeldToWhatItAccepts) {
  for (const Slot slot : {Slot::forward, Slot::derivative, Slot::update}) {
    for (const Slot accepted : {Slot::forward, Slot::derivative, Slot::update}) {
      SCOPED_TRACE(std::string(to_string(accepted)) + " in " + std::string(to_string(slot)));
      StepMachine machine;
      std::set<Slot> ran;
      const Pass pass = pass_of("pass", accepted, [](const Program& program) { return program; });
      const Passes passes = around(pass, slot, ran);
      if (slot == accepted) {
        EXPECT_NO_THROW(machine.compile(product_spec(), passes));
        EXPECT_EQ(ran.size(), 3u);
        continue;
      }
      const Error error = error_of([&] { machine.compile(product_spec(), passes); });
      EXPECT_EQ(error.category(), Category::expansion_contract_violation);
      EXPECT_EQ(error.node(), place("pass", slot));
      EXPECT_EQ(machine.handler_calls, 0);
    }
  }
}

// Expected are the source nodes of what a step of a full registry emits of the kinds left out.
TEST(Contract, RegistryWithoutFillOrReshape_ListsEveryNode) {
  const TrainingSpec spec = spec_of([](const auto& in) { return mean(in["a"] * in["b"]); });
  StepMachine whole;
  const auto compiled = whole.compile(spec, both_passes());
  for (const std::vector<OpKind>& left_out : std::vector<std::vector<OpKind>>{
           {OpKind::Fill}, {OpKind::Reshape}, {OpKind::Fill, OpKind::Reshape}}) {
    std::set<std::string> expected;
    for (const CoverageArtifact& entry : compiled.step.artifacts) {
      const Artifact& artifact = entry.artifact;
      for (std::int64_t i = 0; i < std::ssize(artifact.program.nodes()); ++i) {
        if (std::ranges::count(left_out, kind_of(artifact.program.node(ValueId::node(i)).op)) > 0) {
          const std::string label = artifact.label(i);
          expected.insert(label.substr(0, label.find(" (as ")));
        }
      }
    }
    ASSERT_FALSE(expected.empty());
    StepMachine machine(left_out);
    const Error error = error_of([&] { machine.compile(spec, both_passes()); });
    EXPECT_EQ(error.category(), Category::unsupported_operator);
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(expected.size()) + " unsupported node"));
    for (const std::string& label : expected) EXPECT_THAT(error.message(), HasSubstr(label));
    EXPECT_EQ(machine.handler_calls, 0);
  }
}

TEST(Contract, OneValueForTwoGradients_IsLoweredOnce) {
  StepMachine machine;
  const auto compiled = machine.compile(
      spec_of([](const auto& in) { return mean(in["a"] + in["b"]); }), both_passes());
  const auto& lowered = compiled.lowered[1];
  ASSERT_EQ(lowered.outputs.size(), 2u);
  EXPECT_EQ(compiled.step.derivative().program.outputs()[0].name, "grad.a");
  EXPECT_EQ(compiled.step.derivative().program.outputs()[1].name, "grad.b");
  EXPECT_EQ(lowered.outputs[0], lowered.outputs[1]);
}

// x, u inputs; A = (x+x)+x, M = mean(u), B = u-M, L = mean(A*B): the rewrite of M moves every
// node behind it, and the captures stay c0, c1 ... of the same values.
TrainingSpec centred_spec() {
  return spec_of(
      [](const auto& in) {
        const Var a = (in["a"] + in["a"]) + in["a"];
        const Var b = in["b"] - mean(in["b"], {0, 1}, KeepDims::yes);
        return mean(a * b, {0, 1}, KeepDims::yes);
      },
      {DType::f64, {3, 5}});
}

TrainingStep prepare(const TrainingSpec& spec, const Passes& passes) {
  return prepare_training_step(spec, {}, Target::cpu(), {}, passes);
}

std::map<std::string, Type> captures(const TrainingStep& step) {
  std::map<std::string, Type> result;
  for (const Output& output : step.forward().program.outputs()) {
    if (output.role == OutputRole::capture) {
      result[output.name] = step.forward().program.type(output.value);
    }
  }
  return result;
}

TEST(Contract, CapturesOfAForwardPass_AreTheSameSet) {
  const TrainingStep plain = prepare(centred_spec(), {});
  const TrainingStep rewritten = prepare(centred_spec(), {{expand_mean()}, {}, {}});
  EXPECT_FALSE(captures(plain).empty());
  EXPECT_EQ(captures(plain), captures(rewritten));
  EXPECT_EQ(plain.derivative().program, rewritten.derivative().program);
  EXPECT_NE(plain.forward().program, rewritten.forward().program);
  EXPECT_TRUE(testing::same_values(step_program(plain), step_program(rewritten),
                                   {.sign_of_zero = true, .reassociates = true, .ulp = 1}));
}

// A pass may list captures in another order: their names are the links.
TEST(Contract, CapturesListedInAnotherOrder_Compile) {
  const Pass reversed = editing_pass("reversed", Slot::forward, [](Edit& edit) {
    std::reverse(edit.outputs.begin(), edit.outputs.end());
  });
  const TrainingStep plain = prepare(centred_spec(), {});
  const TrainingStep reordered = prepare(centred_spec(), {{reversed}, {}, {}});
  EXPECT_GE(captures(plain).size(), 2u);
  EXPECT_EQ(reordered.forward().program.outputs().back().name, "loss");
  EXPECT_TRUE(testing::same_values(step_program(plain), step_program(reordered), {}));
}

TEST(Contract, NoCaptures_DerivativeReadsTheSeedAlone) {
  const TrainingStep step =
      prepare(spec_of([](const auto& in) { return mean(in["a"] + in["b"]); }), {});
  EXPECT_TRUE(captures(step).empty());
  ASSERT_EQ(step.derivative().program.inputs().size(), 1u);
  EXPECT_EQ(step.derivative().program.inputs()[0].role, InputRole::seed);
}

TEST(Contract, ResidualReadTwice_IsCapturedOnce) {
  TrainingSpec spec = spec_of([](const auto& in) {
    const Var y = exp(in["a"]);
    return mean(y * y * y);
  });
  spec.parameters = {"a"};
  const TrainingStep step = prepare(spec, {});
  const Program& derivative = step.derivative().program;
  const Program& forward = step.forward().program;
  std::set<ValueId> captured;
  for (const Output& output : forward.outputs()) {
    if (output.role == OutputRole::capture) {
      EXPECT_TRUE(captured.insert(output.value).second);
    }
  }
  const std::int64_t link = std::ranges::find(forward.outputs(), ValueId::node(0), &Output::value) -
                            forward.outputs().begin();
  ASSERT_LT(link, std::ssize(forward.outputs()));
  const std::int64_t residual = derivative.find_input(
      forward.outputs()[static_cast<std::size_t>(link)].name, InputRole::capture);
  ASSERT_GE(residual, 0);
  EXPECT_GE(Uses(derivative).count(ValueId::input(residual)), 2);
}

TEST(Contract, LoweredForward_IsDerivedTwice) {
  for (const KeepDims keep : {KeepDims::no, KeepDims::yes}) {
    const TrainingSpec spec = spec_of([keep](const auto& in) {
      return mean(exp(in["a"]) * in["b"] * in["b"], {0, 1}, keep);
    });
    StepMachine machine;
    const auto compiled = machine.compile(spec, both_passes());
    const Program& forward = compiled.step.forward().program;
    Edit loss_alone(forward);
    loss_alone.outputs.erase(loss_alone.outputs.begin() + 1, loss_alone.outputs.end());
    const Program program = loss_alone.build(forward);
    const std::vector<Tensor> inputs = testing::draw_inputs(program, testing::Draw::positive, 11);
    EXPECT_TRUE(testing::check_gradients(program, inputs, 2, 1e-6));
    // The lowered derivative as well, which is linear in the seed.
    const Derivative lowered{forward, compiled.step.derivative().program};
    EXPECT_TRUE(testing::check_gradients(
        join(lowered),
        [&] {
          std::vector<Tensor> values = inputs;
          const Type& seed = lowered.derivative.inputs()[0].type;
          values.push_back(Tensor::filled(Literal::one(DType::f64), seed.shape.sizes()));
          return values;
        }(),
        1, 1e-6));
  }
}

TEST(Contract, LossOfRankOne_CompilesAndRuns) {
  TrainingSpec spec;
  spec.inputs = {{"x", {DType::f64, {3}}}};
  spec.parameters = {"x"};
  spec.loss = [](Tape&, const NamedVars& in) { return in["x"] * in["x"]; };
  spec.update = [](const UpdateArguments& in) { return Update{in.parameter - in.gradient, {}}; };
  StepMachine machine;
  const auto compiled = machine.compile(spec, both_passes());
  const Program& derivative = compiled.step.derivative().program;
  EXPECT_EQ(derivative.inputs()[0].role, InputRole::seed);
  EXPECT_EQ(derivative.inputs()[0].type, (Type{DType::f64, {3}}));
  machine.set("derivative", "loss", Tensor::of<double>({3}, {1, 10, 100}));
  machine.set("derivative", "c0", Tensor::of<double>({3}, {1, 2, 3}));
  machine.run("derivative");
  EXPECT_THAT(machine.memory.at(compiled.lowered[1].output(0).index).to_doubles(),
              ElementsAre(2, 40, 600));
}

}  // namespace
}  // namespace mulgrad
