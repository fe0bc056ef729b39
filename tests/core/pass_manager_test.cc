#include "core/rewrite/pass_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/custom.h"
#include "core/rewrite/rewriter.h"
#include "tests/support/edit.h"

namespace mulgrad {
namespace {

using testing::Edit;
using ::testing::HasSubstr;

// A derivative with two seeds, two captures of one type and two gradients.
Program derivative() {
  Builder builder("derivative");
  const Type type{DType::f32, {2}};
  const Var s(builder, builder.input("loss", type, InputRole::seed));
  const Var t(builder, builder.input("aux", type, InputRole::seed));
  const Var c0(builder, builder.input("c0", type, InputRole::capture));
  const Var c1(builder, builder.input("c1", type, InputRole::capture));
  builder.output("grad.x", (s * c0).id());
  builder.output("grad.y", (t * c1).id());
  return builder.finish();
}

Pass pass(std::string name, std::function<Program(const Program&)> rewrite) {
  return testing::pass_of(std::move(name), Slot::derivative, std::move(rewrite));
}

// Appends a dead node, so that each run is a change.
Pass grow(std::string name) {
  return pass(std::move(name), [](const Program& program) {
    Rewriter rewriter(program);
    for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) rewriter.copy(i);
    fill(rewriter.builder(), Literal::one(DType::f32), {});
    return rewriter.finish();
  });
}

Pass same(std::string name) {
  return pass(std::move(name), [](const Program& program) { return program; });
}

Pass edit(std::function<void(Edit&)> change) {
  return testing::editing_pass("wrong", Slot::derivative, std::move(change));
}

// Runs [same, `wrong`, a pass that must not run] and returns the error.
Error violation_of(const Pass& wrong, const Program& program = derivative()) {
  bool later_ran = false;
  const Pass later = pass("later", [&](const Program& p) {
    later_ran = true;
    return p;
  });
  const Pass passes[] = {same("first"), wrong, later};
  try {
    run_passes(program, Slot::derivative, passes);
  } catch (const Error& error) {
    EXPECT_FALSE(later_ran);
    return error;
  }
  ADD_FAILURE() << "no error";
  return {Category::invalid_argument, ""};
}

void expect_violation(const Pass& wrong, const std::string& message,
                      const Program& program = derivative()) {
  const Error error = violation_of(wrong, program);
  EXPECT_EQ(error.category(), Category::expansion_contract_violation);
  EXPECT_EQ(error.node(), "pass \"" + wrong.name + "\" at position 1 of the derivative slot");
  EXPECT_THAT(error.message(), HasSubstr(message));
}

TEST(PassManager, NoPass_ReturnsTheProgramWithFreshOrigins) {
  const PipelineResult result = run_passes(derivative(), Slot::derivative, {});
  EXPECT_EQ(result.program, derivative());
  EXPECT_TRUE(result.passes.empty());
  EXPECT_EQ(result.numerics, Numerics{});
  const std::vector<Origin> expected = {0, 1};
  EXPECT_TRUE(std::ranges::equal(result.program.origins(), expected));
}

TEST(PassManager, Passes_RunInOrderAndAreReported) {
  const Pass passes[] = {grow("a"), same("b"), grow("c")};
  const PipelineResult result = run_passes(derivative(), Slot::derivative, passes);
  EXPECT_EQ(result.program.nodes().size(), derivative().nodes().size() + 2);
  ASSERT_EQ(result.passes.size(), 3u);
  const bool changed[] = {true, false, true};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.passes[i].name, passes[i].name);
    EXPECT_EQ(result.passes[i].position, static_cast<std::int64_t>(i));
    EXPECT_EQ(result.passes[i].changed, changed[i]);
    EXPECT_GE(result.passes[i].seconds, 0);
  }
}

TEST(PassManager, Numerics_AreTheUnionOverThePassesThatChanged) {
  Pass a = grow("a");
  a.numerics = {.sign_of_zero = true, .ulp = 1};
  Pass b = same("b");
  b.numerics = {.finite_only = true};
  Pass c = grow("c");
  c.numerics = {.reassociates = true, .ulp = 2};
  const Pass passes[] = {a, b, c};
  EXPECT_EQ(run_passes(derivative(), Slot::derivative, passes).numerics,
            (Numerics{.sign_of_zero = true, .reassociates = true, .ulp = 2}));
}

TEST(PassManager, Regions_AreCollectedWithOrigins) {
  Pass halve = same("halve");
  halve.run = [](const Program& program) {
    const Replacement replacements[] = {{1, {}, {}, [](Rewriter& rewriter) {
                                           return rewriter.operands(1)[0] *
                                                  rewriter.operands(1)[1] * 1.0;
                                         }}};
    return apply(program, "halve", replacements);
  };
  const Pass passes[] = {halve};
  const PipelineResult result = run_passes(derivative(), Slot::derivative, passes);
  ASSERT_EQ(result.passes[0].regions.size(), 1u);
  EXPECT_EQ(result.passes[0].regions[0].source, std::vector<std::int64_t>{1});
  EXPECT_EQ(result.passes[0].regions[0].emitted, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(result.passes[0].regions[0].origin, 1);
  const std::vector<Origin> expected = {0, 1, 1};
  EXPECT_TRUE(std::ranges::equal(result.program.origins(), expected));
}

TEST(PassManager, SlotNotAccepted_IsRefusedBeforeAnythingRuns) {
  bool ran = false;
  const Pass first = pass("first", [&](const Program& program) {
    ran = true;
    return program;
  });
  Pass forward = same("forward_only");
  forward.accepts = {Slot::forward, Slot::update};
  const Pass passes[] = {first, forward};
  try {
    run_passes(derivative(), Slot::derivative, passes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    EXPECT_EQ(error.node(), "pass \"forward_only\" at position 1 of the derivative slot");
    EXPECT_THAT(error.message(), HasSubstr("forward, update"));
  }
  EXPECT_FALSE(ran);
}

TEST(PassManager, NumericsNotAllowed_AreRefusedBeforeAnythingRuns) {
  Pass rough = grow("rough");
  rough.numerics = {.sign_of_zero = true, .ulp = 1};
  const Pass passes[] = {rough};
  EXPECT_NO_THROW(run_passes(derivative(), Slot::derivative, passes, rough.numerics));
  try {
    run_passes(derivative(), Slot::derivative, passes, {.sign_of_zero = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    EXPECT_EQ(error.node(), "pass \"rough\" at position 0 of the derivative slot");
    EXPECT_THAT(error.message(), HasSubstr("{sign_of_zero, ulp(1)}"));
  }
}

Property at_most(std::size_t count) {
  return {"few nodes", [count](const Program& program) -> std::optional<std::string> {
            if (program.nodes().size() <= count) return std::nullopt;
            return "found " + std::to_string(program.nodes().size()) + " nodes";
          }};
}

TEST(PassManager, NeedsDoNotHold_AreAViolation) {
  Pass needy = grow("needy");
  needy.needs = {at_most(1)};
  expect_violation(needy, "it needs \"few nodes\": found 2 nodes");
  needy.needs = {at_most(2)};
  const Pass passes[] = {needy};
  EXPECT_NO_THROW(run_passes(derivative(), Slot::derivative, passes));
}

TEST(PassManager, LeavesDoNotHold_AreAViolation) {
  Pass messy = grow("messy");
  messy.leaves = {at_most(2)};
  expect_violation(messy, "it does not leave \"few nodes\": found 3 nodes");
  messy.leaves = {at_most(3)};
  const Pass passes[] = {messy};
  EXPECT_NO_THROW(run_passes(derivative(), Slot::derivative, passes));
}

TEST(PassManager, InterfaceChanges_AreViolations) {
  const Type other{DType::f32, {3}};
  struct Case {
    std::function<void(Edit&)> change;
    std::string message;
  };
  const Case cases[] = {
      {[&](Edit& e) {
         e.inputs.push_back({"c2", other, InputRole::capture});
       },
       "found a new capture \"c2\" tensor<3xf32>"},
      {[&](Edit& e) { e.inputs[0].role = InputRole::input; },
       "found at input 0 input \"loss\" tensor<2xf32>, expected seed \"loss\" tensor<2xf32>"},
      {[&](Edit& e) { e.inputs[2].name = "c7"; }, "expected capture \"c0\""},
      {[&](Edit& e) { std::swap(e.inputs[2], e.inputs[3]); }, "reads the capture \"c1\""},
      {[&](Edit& e) {
         for (Input& input : e.inputs) input.type = other;
       },
       "found at input 0 seed \"loss\" tensor<3xf32>, expected seed \"loss\" tensor<2xf32>"},
      {[&](Edit& e) { e.outputs.pop_back(); }, "found no output \"grad.y\" tensor<2xf32> any more"},
      {[&](Edit& e) {
         e.outputs.push_back({"grad.z", e.outputs[0].value});
       },
       "found a new output \"grad.z\""},
      {[&](Edit& e) { std::swap(e.outputs[0], e.outputs[1]); },
       "found at output 0 output \"grad.y\""},
      {[&](Edit& e) { e.outputs[1].role = OutputRole::capture; },
       "found at output 1 captured result \"grad.y\""},
  };
  for (const Case& item : cases) {
    SCOPED_TRACE(item.message);
    expect_violation(edit(item.change), item.message);
  }
}

TEST(PassManager, InputIsDropped_IsAViolation) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  builder.input("unused", {DType::f32, {2}});
  builder.output("y", (-x).id());
  const Program program = builder.finish();
  expect_violation(edit([](Edit& e) { e.inputs.pop_back(); }),
                   "found no input \"unused\" tensor<2xf32> any more", program);
}

TEST(PassManager, OutputChangesType_IsAViolation) {
  const Pass reshaped = pass("wrong", [](const Program& program) {
    Rewriter rewriter(program);
    rewriter.copy(0);
    rewriter.copy(1);
    rewriter.replace(0, reshape(rewriter.at(ValueId::node(0)), {1, 2}).id());
    return rewriter.finish();
  });
  expect_violation(reshaped, "found at output 0 output \"grad.x\" tensor<1x2xf32>");
}

TEST(PassManager, SeedIsDetached_IsAViolation) {
  const auto seed_by_itself = [](Edit& e) {
    e.operand = [](Operand operand) {
      return operand == Operand(ValueId::input(0)) ? Operand(Literal::one(DType::f32)) : operand;
    };
  };
  expect_violation(edit(seed_by_itself),
                   "the output \"grad.x\" does not depend on the seed \"loss\" any more");
}

// grad.x reads both seeds and keeps one, so that it is the seed itself that is missed.
TEST(PassManager, OneOfTwoSeedsIsDetached_IsAViolation) {
  Builder builder("derivative");
  const Type type{DType::f32, {2}};
  const Var s(builder, builder.input("loss", type, InputRole::seed));
  const Var t(builder, builder.input("aux", type, InputRole::seed));
  builder.output("grad.x", (s + t).id());
  const Program program = builder.finish();
  expect_violation(edit([](Edit& e) {
                     e.operand = [](Operand operand) {
                       return operand == Operand(ValueId::input(1))
                                  ? Operand(Literal::one(DType::f32))
                                  : operand;
                     };
                   }),
                   "no output depends on the seed \"aux\" any more", program);
}

TEST(PassManager, SeedOfOneGradientIsDetached_IsAViolation) {
  Builder builder("derivative");
  const Type type{DType::f32, {2}};
  const Var s(builder, builder.input("loss", type, InputRole::seed));
  builder.output("grad.x", (s * 2.0).id());
  builder.output("grad.y", (s * 3.0).id());
  const Program program = builder.finish();
  const auto detach = [](double value) {
    return pass("wrong", [value](const Program& source) {
      Rewriter rewriter(source);
      rewriter.copy(0);
      rewriter.replace(1,
                       fill(rewriter.builder(), Literal::from_double(DType::f32, value), {2}).id());
      return rewriter.finish();
    });
  };
  expect_violation(detach(3), "the output \"grad.y\" does not depend on the seed \"loss\" any more",
                   program);
  const Pass folds_to_zero[] = {detach(0)};
  EXPECT_TRUE(run_passes(program, Slot::derivative, folds_to_zero).passes[0].changed);
}

// Dependence is followed for 64 outputs at once: the last of many is as safe as the first.
TEST(PassManager, OneOfManyGradientsReadsAnotherValue_IsAViolation) {
  Builder builder("derivative");
  const Type type{DType::f32, {2}};
  const Var s(builder, builder.input("loss", type, InputRole::seed));
  std::vector<Var> captures;
  for (int i = 0; i < 130; ++i) {
    captures.emplace_back(builder,
                          builder.input("c" + std::to_string(i), type, InputRole::capture));
  }
  for (int i = 0; i < 130; ++i) {
    builder.output("grad.x" + std::to_string(i), (s * captures[static_cast<std::size_t>(i)]).id());
  }
  const Program program = builder.finish();
  for (const std::size_t i : {0, 63, 64, 129}) {
    expect_violation(edit([i](Edit& e) {
                       e.operand = [i](Operand operand) {
                         const auto capture = ValueId::input(1 + static_cast<std::int64_t>(i));
                         return operand == Operand(capture) ? Operand(ValueId::input(6)) : operand;
                       };
                     }),
                     "the output \"grad.x" + std::to_string(i) + "\" reads the capture \"c5\"",
                     program);
  }
}

TEST(PassManager, CapturesInAnotherOrder_AreTheSameSet) {
  const Pass passes[] = {pass("sorts captures", [](const Program& program) {
    Edit edited(program);
    std::swap(edited.inputs[2], edited.inputs[3]);
    edited.operand = [](Operand operand) {
      if (operand == Operand(ValueId::input(2))) return Operand(ValueId::input(3));
      if (operand == Operand(ValueId::input(3))) return Operand(ValueId::input(2));
      return operand;
    };
    return edited.build(program);
  })};
  EXPECT_TRUE(run_passes(derivative(), Slot::derivative, passes).passes[0].changed);
}

TEST(PassManager, AnotherForwardValueIsRead_IsAViolation) {
  // Both gradients still depend on some seed and some capture, but on the wrong one.
  const auto exchange = [](Edit& e) {
    e.operand = [](Operand operand) {
      if (operand == Operand(ValueId::input(2))) return Operand(ValueId::input(3));
      if (operand == Operand(ValueId::input(3))) return Operand(ValueId::input(2));
      return operand;
    };
  };
  expect_violation(edit(exchange),
                   "the output \"grad.x\" reads the capture \"c1\" tensor<2xf32>, expected the "
                   "capture \"c0\" tensor<2xf32>");
}

TEST(PassManager, CaptureIsFoldedAway_IsAllowed) {
  const Pass passes[] = {edit([](Edit& e) {
    e.operand = [](Operand operand) {
      return operand == Operand(ValueId::input(2)) ? Operand(Literal::one(DType::f32)) : operand;
    };
  })};
  EXPECT_TRUE(run_passes(derivative(), Slot::derivative, passes).passes[0].changed);
}

TEST(PassManager, ChangedFlagContradictsTheResult_IsAViolation) {
  Pass silent = grow("silent");
  silent.run = [run = silent.run](const Program& program) {
    PassResult result = run(program);
    result.changed = false;
    return result;
  };
  expect_violation(silent, "it says that it changed nothing, but its result differs");
  Pass boastful = same("boastful");
  boastful.run = [](const Program& program) { return PassResult{program, {}, true}; };
  expect_violation(boastful, "it says that it changed something, but its result equals");
}

TEST(PassManager, RegionOutsideOfThePrograms_IsAViolation) {
  const auto reporting = [](Region region) {
    Pass result = grow("reporting");
    result.run = [run = result.run, region](const Program& program) {
      PassResult made = run(program);
      made.regions.push_back(region);
      return made;
    };
    return result;
  };
  const std::string outside = "a node outside";
  expect_violation(reporting({"p", {2}, {}, ValueId::node(0), {}}), outside);
  expect_violation(reporting({"p", {0}, {3}, ValueId::node(0), {}}), outside);
  expect_violation(reporting({"p", {0}, {}, ValueId::node(3), {}}), outside);
  expect_violation(reporting({"p", {0}, {}, ValueId::node(0), {.ulp = 1}}),
                   "found a region of numerics {ulp(1)}, expected a subset of the declared {}");
  const Pass passes[] = {reporting({"p", {1}, {2}, ValueId::node(2), {}})};
  EXPECT_NO_THROW(run_passes(derivative(), Slot::derivative, passes));
}

TEST(PassManager, ForeignException_BecomesAViolationThatKeepsTheCause) {
  const Pass thrower =
      pass("thrower", [](const Program&) -> Program { throw std::out_of_range("the cause"); });
  expect_violation(thrower, "it threw: the cause");
  const Pass passes[] = {thrower};
  try {
    run_passes(derivative(), Slot::derivative, passes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST(PassManager, ThrownValueOfNoExceptionType_BecomesAViolationThatKeepsTheCause) {
  const Pass thrower = pass("thrower", [](const Program&) -> Program { throw 42; });
  expect_violation(thrower, "no std::exception");
  const Pass passes[] = {thrower};
  try {
    run_passes(derivative(), Slot::derivative, passes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), int);
  }
}

TEST(PassManager, OwnError_PassesUnchanged) {
  const Pass refuser = pass("refuser", [](const Program&) -> Program {
    throw Error(Category::unsupported_reduction, "no", "%3 mulgrad.mean");
  });
  const Error error = violation_of(refuser);
  EXPECT_EQ(error.category(), Category::unsupported_reduction);
  EXPECT_EQ(error.message(), "no");
  EXPECT_EQ(error.node(), "%3 mulgrad.mean");
}

// A custom op that infers another type each time, so that a program made of it does not verify.
class Fickle : public CustomDefinition {
 public:
  Fickle() : CustomDefinition("fickle") {}
  Type infer(const std::string&, std::span<const Type>) const override {
    return {DType::f32, {++size_}};
  }
  Tensor evaluate(const std::string&, std::span<const Tensor>) const override { return {}; }

 private:
  mutable std::int64_t size_ = 0;
};

TEST(PassManager, ResultDoesNotVerify_IsAViolationThatKeepsTheCause) {
  const Pass fickle = pass("fickle", [](const Program& program) {
    Rewriter rewriter(program);
    rewriter.copy(0);
    rewriter.copy(1);
    rewriter.builder().add(Custom{std::make_shared<Fickle>(), ""}, {});
    return rewriter.finish();
  });
  expect_violation(fickle, "its result does not verify: shape_mismatch: %2 ");
}

}  // namespace
}  // namespace mulgrad
