// What derive() and join() emit and refuse; higher orders; large programs.
#include "autodiff/derive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "autodiff/link.h"
#include "autodiff/losses.h"
#include "autodiff/tape.h"
#include "core/custom.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "tests/support/gradient_check.h"
#include "tests/support/near.h"
#include "tests/support/scale.h"

namespace mulgrad::testing {
namespace {

const Type kVector{DType::f64, {3}};

Tensor vector(std::initializer_list<double> values) {
  return Tensor::of<double>({std::ssize(values)}, values);
}

Program traced(const std::function<Var(Var)>& f, const Type& type = kVector) {
  Tape tape;
  const Var x = tape.input("x", type);
  tape.output("y", f(x));
  return tape.finish();
}

// The error of deriving y with respect to x; fails the test where there is none.
Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(Category::invalid_argument, "");
}

Error error_of(const Program& program) {
  return error_of([&] { derive(program, {"y"}, {"x"}); });
}

std::vector<std::string> names(const Program& program, InputRole role) {
  std::vector<std::string> result;
  for (const Input& input : program.inputs()) {
    if (input.role == role) result.push_back(input.name);
  }
  return result;
}

using Names = std::vector<std::string>;

// ---- Interface -------------------------------------------------------------------------------

TEST(Derive, Result_LinksCapturesByNameAndLeavesTheSourceAlone) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  const Var unread = tape.input("unread", kVector);
  const Var y = exp(x);
  tape.output("y", sin(y));
  tape.output("z", unread * 2);
  const Program program = tape.finish();
  const Program copy = program;
  const Derivative first = derive(program, {"y"}, {"x"});
  const Derivative second = derive(program, {"y"}, {"x"});
  EXPECT_EQ(program, copy);
  EXPECT_EQ(first.forward, second.forward);
  EXPECT_EQ(first.derivative, second.derivative);
  ASSERT_EQ(first.forward.outputs().size(), 3u);
  EXPECT_EQ(first.forward.outputs()[2], (Output{"c0", ValueId::node(0), OutputRole::capture}));
  EXPECT_EQ(names(first.derivative, InputRole::seed), Names{"y"});
  EXPECT_EQ(names(first.derivative, InputRole::capture), Names{"c0"});
  EXPECT_EQ(first.derivative.outputs()[0].name, "grad.x");
  EXPECT_EQ(first.derivative.name(), "main.grad");
}

TEST(Derive, WrtANode_GivesItsTotalCotangentAndGoesOnToTheInput) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  const Var y = x * x;
  tape.output("y", y * 3 + y);
  const Program program = tape.finish();
  const std::int64_t output = 0;
  const std::vector<ValueId> wrt = {y.id(), ValueId::input(0)};
  const Derivative result = derive(program, {&output, 1}, wrt);
  EXPECT_EQ(result.derivative.outputs()[0].name, "grad.n0");
  const auto gradients = gradients_of(result, std::vector<Tensor>{vector({1, 2, 3})});
  EXPECT_TRUE(near(gradients[0], vector({4, 4, 4})));
  EXPECT_TRUE(near(gradients[1], vector({8, 16, 24})));
}

TEST(Derive, CapturesMarkedAlready_KeepTheirNames) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  const Var y = exp(x);
  const Var z = sin(y);
  tape.output("y", z * y);
  tape.builder().output("c1", y.id(), OutputRole::capture);
  const Derivative result = derive(tape.finish(), {"y"}, {"x"});
  // The first use is the product's: y (marked), then z (new), then y again in sine and exp.
  Names found = names(result.derivative, InputRole::capture);
  std::ranges::sort(found);
  EXPECT_EQ(found, (Names{"c0", "c1"}));
  EXPECT_EQ(result.forward.outputs().size(), 3u);
  EXPECT_TRUE(check_gradients(join(result), {vector({.1, .2, .3}), vector({1, 1, 1})}, 1));
}

TEST(Derive, OutputsOfOneValue_AddTheirSeeds) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  const Var y = x * 2;
  tape.output("a", y);
  tape.output("b", y);
  const Derivative result = derive(tape.finish(), {"a", "b"}, {"x"});
  EXPECT_EQ(names(result.derivative, InputRole::seed), (Names{"a", "b"}));
  const std::vector<Tensor> seeds = {vector({1, 2, 3}), vector({10, 20, 30})};
  const auto gradients = gradients_of(result, std::vector<Tensor>{vector({0, 0, 0})}, seeds);
  EXPECT_TRUE(near(gradients[0], vector({22, 44, 66})));
}

TEST(Derive, OriginsOfTheDerivative_NameTheForwardNodes) {
  const Program program = traced([](Var x) { return sin(exp(x)); });
  const Derivative result = derive(program, {"y"}, {"x"});
  const auto origins = result.derivative.origins();
  EXPECT_EQ((std::vector<Origin>{origins.begin(), origins.end()}), (std::vector<Origin>{1, 1, 0}));
}

TEST(Derive, SymbolicBatch_BindsToTheDerivativeOfTheBoundProgram) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {Dim::symbol("B"), 4}});
  const Var w = tape.input("w", {DType::f32, {4, 2}});
  const Var b = tape.input("b", {DType::f32, {1, 2}});
  const Var h = maximum(matmul(x, w) + b, 0);
  tape.output("y", sum(slice(h, {0, 1}, {Dim::symbol("B"), 2}), {1}));
  const Program program = tape.finish();
  const Bindings batch{{"B", 5}};
  const Derivative symbolic = derive(program, {"y"}, {"w", "b"});
  const Derivative bound = derive(bind(program, batch), {"y"}, {"w", "b"});
  EXPECT_EQ(bind(symbolic.forward, batch), bound.forward);
  EXPECT_EQ(bind(symbolic.derivative, batch), bound.derivative);
}

// ---- Errors ----------------------------------------------------------------------------------

TEST(Derive, InputThatNothingReads_IsAnErrorNamingItOrZeros) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  tape.input("unread", {DType::f32, {2, 2}});
  tape.output("y", x * 2);
  const Program program = tape.finish();
  const Error error = error_of([&] { derive(program, {"y"}, {"x", "unread"}); });
  EXPECT_EQ(error.category(), Category::missing_derivative_behavior);
  EXPECT_EQ(error.node(), "%arg1 \"unread\"");
  const Derivative zero = derive(program, {"y"}, {"x", "unread"}, {Unused::zero});
  const Node& fill = zero.derivative.node(zero.derivative.outputs()[1].value);
  EXPECT_EQ(fill.op, Op(Fill{Literal::zero(DType::f32), {2, 2}}));
}

TEST(Derive, OnlyZeroDerivativesBetween_CountAsUnused) {
  const std::vector<std::function<Var(Var)>> blocked = {
      [](Var x) { return floor(x); },
      [](Var x) { return ceil(x); },
      [](Var x) { return round_nearest_even(x); },
      [](Var x) { return sign(x); },
      [](Var x) { return stop_gradient(x * x); },
      [](Var x) { return convert(compare(Comparison::GT, x, 0), DType::f64); },
      [](Var x) { return convert(is_finite(x), DType::f64); },
      [](Var x) { return convert(convert(x, DType::i32), DType::f64); },
      [](Var x) {
        const Var one = fill(x.builder(), Literal::one(DType::f64), x.shape());
        return select(compare(Comparison::LT, x, 1), one, 0);
      },
  };
  for (const auto& f : blocked) {
    const Program program = traced(f);
    EXPECT_EQ(error_of(program).category(), Category::missing_derivative_behavior)
        << print(program);
    const Derivative zero = derive(program, {"y"}, {"x"}, {Unused::zero});
    EXPECT_EQ(zero.derivative.nodes().size(), 1u) << print(zero.derivative);
    EXPECT_EQ(zero.forward, program);
  }
}

TEST(Derive, SelectedOutputs_MustBeThereOnceAndFloat) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  tape.output("y", x * 2);
  tape.output("whole", convert(x, DType::i32));
  tape.builder().output("kept", x.id(), OutputRole::capture);
  const Program program = tape.finish();
  const ValueId wrt = ValueId::input(0);
  for (const std::vector<std::int64_t>& outputs :
       std::vector<std::vector<std::int64_t>>{{3}, {-1}, {0, 0}, {1}, {2}}) {
    const Error error = error_of([&] { derive(program, outputs, {&wrt, 1}); });
    EXPECT_EQ(error.category(), Category::invalid_selected_output) << error.what();
  }
  EXPECT_EQ(error_of([&] { derive(program, {"none"}, {"x"}); }).category(),
            Category::invalid_selected_output);
}

TEST(Derive, WrtValues_MustBeThereOnceAndFloat) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  tape.input("n", {DType::i32, {3}});
  tape.output("y", x * 2);
  const Program program = tape.finish();
  const auto category_for = [&](const std::vector<std::string>& wrt) {
    return error_of([&] { derive(program, {"y"}, wrt); }).category();
  };
  EXPECT_EQ(category_for({"n"}), Category::dtype_not_differentiable);
  EXPECT_EQ(category_for({"x", "x"}), Category::invalid_argument);
  EXPECT_EQ(category_for({"none"}), Category::invalid_argument);
  const std::int64_t output = 0;
  const ValueId absent = ValueId::node(7);
  EXPECT_EQ(error_of([&] {
              derive(program, {&output, 1}, {&absent, 1});
            }).category(),
            Category::invalid_argument);
}

TEST(Derive, MeanOverASymbolicCount_IsRefusedNamingTheNode) {
  const Error error = error_of(
      traced([](Var x) { return mean(exp(x), {0}); }, {DType::f32, {Dim::symbol("B"), 2}}));
  EXPECT_EQ(error.category(), Category::unresolved_symbolic_shape);
  EXPECT_EQ(error.node(), "%1 mulgrad.mean");
}

// ---- Custom ops ------------------------------------------------------------------------------

using Cotangents = std::optional<std::vector<std::optional<Var>>>;

// y = a + b in a box, with whatever derivative a test asks for.
class Boxed final : public CustomDefinition {
 public:
  using Rule = std::function<Cotangents(std::span<const Var>, Var, Var)>;
  explicit Boxed(Rule rule) : CustomDefinition("test.boxed"), rule_(std::move(rule)) {}
  Type infer(const std::string&, std::span<const Type> operands) const override {
    return operands[0];
  }
  Tensor evaluate(const std::string&, std::span<const Tensor> operands) const override {
    return operands[0];
  }
  Cotangents derivative(const std::string&, std::span<const Var> operands, Var result,
                        Var cotangent) const override {
    return rule_(operands, result, cotangent);
  }

 private:
  Rule rule_;
};

Program boxed(Boxed::Rule rule) {
  const auto definition = std::make_shared<const Boxed>(std::move(rule));
  return traced([&](Var x) {
    const Var a = exp(x);
    const Var b = sin(x);
    const Var box{x.builder(), x.builder().add(Custom{definition, ""}, {a.id(), b.id()})};
    return cos(box);
  });
}

TEST(DeriveCustom, WithoutDerivative_IsNotImplementedNamingTheNode) {
  const Error error = error_of(boxed([](auto, auto, auto) { return Cotangents(); }));
  EXPECT_EQ(error.category(), Category::autodiff_not_implemented);
  EXPECT_EQ(error.node(), "%2 stablehlo.custom_call");
  EXPECT_NE(error.message().find("test.boxed"), std::string::npos);
}

TEST(DeriveCustom, ThatRefuses_IsNonDifferentiableNamingTheNode) {
  const Error error = error_of(boxed([](auto, auto, auto) -> Cotangents {
    throw Error(Category::non_differentiable_route, "a table has no derivative");
  }));
  EXPECT_EQ(error.category(), Category::non_differentiable_route);
  EXPECT_EQ(error.node(), "%2 stablehlo.custom_call");
}

TEST(DeriveCustom, CotangentsThatDoNotFit_AreRefused) {
  const std::vector<Boxed::Rule> rules = {
      [](auto, Var, Var dy) { return Cotangents({dy}); },
      [](auto, Var, Var dy) {
        return Cotangents({dy, sum(dy)});
      },
      [](auto, Var, Var dy) {
        return Cotangents({convert(dy, DType::f32), dy});
      },
  };
  for (const auto& rule : rules) {
    const Error error = error_of(boxed(rule));
    EXPECT_EQ(error.category(), Category::handler_contract_violation) << error.what();
    EXPECT_EQ(error.node(), "%2 stablehlo.custom_call");
  }
}

TEST(DeriveCustom, WhatPassesNothing_LeavesNothingBehind) {
  const Program nothing = boxed([](auto, Var, Var) { return Cotangents({{}, {}}); });
  EXPECT_EQ(error_of(nothing).category(), Category::missing_derivative_behavior);
  const Derivative zero = derive(nothing, {"y"}, {"x"}, {Unused::zero});
  EXPECT_EQ(zero.derivative.nodes().size(), 1u);
  EXPECT_EQ(zero.derivative.inputs().size(), 1u);  // the seed
  EXPECT_EQ(zero.forward, nothing);
  // One operand alone: exp and its capture are gone, and captures count from c0 still.
  const Derivative one = derive(boxed([](auto, Var, Var dy) {
                                  return Cotangents({{}, dy});
                                }),
                                {"y"}, {"x"});
  EXPECT_EQ(names(one.derivative, InputRole::capture), (Names{"c0", "c1"}));
  EXPECT_EQ(one.derivative.nodes().size(), 5u) << print(one.derivative);
}

// ---- Higher orders ---------------------------------------------------------------------------

TEST(Join, SecondOrder_NamesStayUnique) {
  const Program program = traced([](Var x) { return x * x * x; });
  const Program first = join(derive(program, {"y"}, {"x"}));
  EXPECT_EQ(names(first, InputRole::input), (Names{"x", "ct.y"}));
  const Program second = join(derive(first, {"grad.x"}, {"x"}));
  EXPECT_EQ(names(second, InputRole::input), (Names{"x", "ct.y", "ct.grad.x"}));
  ASSERT_EQ(second.outputs().size(), 3u);
  EXPECT_EQ(second.outputs()[2].name, "grad.grad.x");
  const Program third = join(derive(second, {"grad.grad.x"}, {"x"}));
  const Tensor ones = vector({1, 1, 1});
  const auto values = interpret(third, std::vector<Tensor>{vector({1, 2, -3}), ones, ones, ones});
  EXPECT_TRUE(near(values[0], vector({1, 8, -27})));
  EXPECT_TRUE(near(values[1], vector({3, 12, 27})));
  EXPECT_TRUE(near(values[2], vector({6, 12, -18})));
  EXPECT_TRUE(near(values[3], vector({6, 6, 6})));
}

TEST(Join, SeedOfAnInputAlreadyNamedSo_GetsItsPrefixAgain) {
  const Program first = join(derive(traced([](Var x) { return x * x; }), {"y"}, {"x"}));
  const Program again = join(derive(first, {"y"}, {"x"}));
  EXPECT_EQ(names(again, InputRole::input), (Names{"x", "ct.y", "ct.ct.y"}));
  EXPECT_NO_THROW(verify(again));
}

TEST(Join, CaptureThatTheForwardProgramLacks_IsMalformed) {
  const Program program = traced([](Var x) { return x * x; });
  Derivative derivative = derive(program, {"y"}, {"x"});
  derivative.forward = program;
  EXPECT_EQ(error_of([&] { join(derivative); }).category(), Category::malformed_derivative_ir);
}

TEST(Append, InputsThatDoNotFit_AreRefused) {
  const Program program = traced([](Var x) { return x * x; });
  Builder builder;
  const ValueId fits = builder.input("a", kVector);
  const ValueId longer = builder.input("b", {DType::f64, {4}});
  const ValueId narrow = builder.input("c", {DType::f32, {3}});
  const auto category_for = [&](const std::vector<ValueId>& inputs) {
    return error_of([&] { append(builder, program, inputs); }).category();
  };
  EXPECT_EQ(category_for({}), Category::invalid_argument);
  EXPECT_EQ(category_for({longer}), Category::shape_mismatch);
  EXPECT_EQ(category_for({narrow}), Category::dtype_mismatch);
  EXPECT_EQ(append(builder, program, std::vector<ValueId>{fits}),
            std::vector<ValueId>{ValueId::node(0)});
}

TEST(Derive, ADerivativeProgramItself_DerivesInItsSeedAndItsCaptures) {
  const Program program = traced([](Var x) { return exp(x) * sin(x); });
  const Derivative first = derive(program, {"y"}, {"x"});
  const Program& derivative = first.derivative;
  std::vector<ValueId> wrt;
  std::vector<Tensor> inputs;
  for (std::int64_t i = 0; i < std::ssize(derivative.inputs()); ++i) {
    wrt.push_back(ValueId::input(i));
    inputs.push_back(vector({0.5, 1.0 + static_cast<double>(i), -0.25}));
  }
  EXPECT_TRUE(check_gradients(derivative, inputs, 2));
  const std::int64_t output = 0;
  const Derivative second = derive(derivative, {&output, 1}, wrt);
  EXPECT_EQ(second.derivative.outputs()[0].name, "grad.y");
  EXPECT_EQ(parse(print(second.forward)), second.forward);
  EXPECT_EQ(parse(print(second.derivative)), second.derivative);
}

TEST(Derive, CompositeFunctions_AgreeWithFiniteDifferencesToSecondOrder) {
  const std::vector<std::pair<std::string, std::function<Var(Var)>>> cases = {
      {"softmax over axis 1 of rank 3", [](Var x) { return softmax(x, 1); }},
      {"log softmax over the last axis", [](Var x) { return log_softmax(x, -1); }},
      {"norm", [](Var x) { return sqrt(sum(x * x)); }},
      {"two shared nodes",
       [](Var x) {
         const Var y = exp(x * 0.5);
         const Var z = sin(y) * y;
         return z / (y + z * z);
       }},
      {"mean of a matrix product",
       [](Var x) {
         const Var m = reshape(x, {4, 3});
         return mean(matmul(m, transpose(m)), {1}, KeepDims::yes);
       }},
  };
  const Tensor x = Tensor::of<double>(
      {2, 3, 2}, {0.1, -0.4, 0.9, 1.3, -1.1, 0.35, 0.6, -0.7, 0.2, 0.05, 1.7, -0.9});
  for (const auto& [name, f] : cases) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(check_gradients(traced(f, x.type()), {x}, 2));
  }
}

// ---- Size ------------------------------------------------------------------------------------

TEST(DeriveLarge, SumOfSquaresByAMillionNodes_IsXOverItsNorm) {
  constexpr std::int64_t kTerms = testing::kLongChain / 2;
  Tape tape;
  const Var x = tape.input("x", {DType::f64, {2}});
  Var total = x * x;
  for (std::int64_t i = 1; i < kTerms; ++i) {
    const Var square = x * x;
    total = total + square;
  }
  tape.output("y", sqrt(sum(total)));
  const Program program = tape.finish();
  EXPECT_GE(std::ssize(program.nodes()), testing::kLongChain);
  const Derivative derivative = derive(program, {"y"}, {"x"});
  const auto gradients = gradients_of(derivative, std::vector<Tensor>{vector({3, 4})});
  const double scale = std::sqrt(static_cast<double>(kTerms));
  EXPECT_TRUE(near(gradients[0], vector({0.6 * scale, 0.8 * scale}), {.relative = 1e-9}));
}

TEST(DeriveLarge, MaskMadeByALongChain_IsMadeAgain) {
  Tape tape;
  const Var x = tape.input("x", kVector);
  Var mask = is_finite(x);
  constexpr std::int64_t kNodes = testing::kLongChain / 4;
  for (std::int64_t i = 0; i < kNodes; ++i) mask = logical_not(mask);
  tape.output("y", select(mask, x * 3, x));
  const Derivative derivative = derive(tape.finish(), {"y"}, {"x"});
  EXPECT_GE(std::ssize(derivative.derivative.nodes()), kNodes);
  for (const Input& input : derivative.derivative.inputs()) {
    EXPECT_EQ(input.type.dtype, DType::f64) << input.name;
  }
}

TEST(DeriveLarge, ChainOfAMillionNodes_DerivesAndJoins) {
  Tape tape;
  const Var x = tape.input("x", {DType::f64, {}});
  Var y = x;
  for (std::int64_t i = 0; i < testing::kLongChain; ++i) y = i % 2 == 0 ? sin(y) : -y;
  tape.output("y", y);
  const Derivative derivative = derive(tape.finish(), {"y"}, {"x"});
  EXPECT_EQ(std::ssize(derivative.derivative.nodes()), testing::kLongChain * 3 / 2);
  EXPECT_EQ(std::ssize(join(derivative).nodes()), testing::kLongChain * 5 / 2);
}

TEST(DeriveLarge, DoublingSixtyFourTimes_IsLinear) {
  const Program program = traced([](Var x) {
    for (int i = 0; i < 64; ++i) x = x + x;
    return x;
  });
  const Derivative derivative = derive(program, {"y"}, {"x"});
  EXPECT_EQ(derivative.derivative.nodes().size(), 64u);
  const auto gradients = gradients_of(derivative, std::vector<Tensor>{vector({1, 2, 3})});
  EXPECT_TRUE(near(gradients[0], vector({0x1p64, 0x1p64, 0x1p64})));
}

}  // namespace
}  // namespace mulgrad::testing
