#include "lowering/expand_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/interpreter.h"
#include "core/rewrite/pass_manager.h"
#include "core/rewrite/pattern.h"
#include "core/text.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

using namespace pattern;
using ::testing::HasSubstr;

struct Form {
  DType dtype;
  std::int64_t r;
  std::int64_t c;
  KeepDims keep;
  Axes axes;
};

std::vector<Form> forms() {
  std::vector<Form> result;
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{3, 5}, {1, 1}, {5, 3}, {4, 4}, {1, 7}};
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [r, c] : sizes) {
      for (const KeepDims keep : {KeepDims::no, KeepDims::yes}) {
        for (const Axes& axes : {Axes{0, 1}, Axes{1, 0}, Axes{-1, -2}, Axes{-2, -1}}) {
          result.push_back({dtype, r, c, keep, axes});
        }
      }
    }
  }
  return result;
}

Program mean_of(const Form& form) {
  Builder builder;
  const Var x(builder, builder.input("x", {form.dtype, {form.r, form.c}}));
  builder.output("m", mean(x, form.axes, form.keep).id());
  return builder.finish();
}

// The region of a mean, with every type spelled out here.
Pattern region(const Form& form) {
  const DType dtype = form.dtype;
  const Literal one = Literal::one(dtype);
  const auto product = [&](Pattern a, Pattern b, Shape shape) {
    return exactly(DotGeneral{{}, {}, {1}, {0}, dtype}, a, b).typed({dtype, std::move(shape)});
  };
  const Pattern row_sums =
      product(value(ValueId::input(0)), exactly(Fill{one, {form.c, 1}}).typed({dtype, {form.c, 1}}),
              {form.r, 1});
  const Pattern total =
      product(exactly(Fill{one, {1, form.r}}).typed({dtype, {1, form.r}}), row_sums, {1, 1});
  const Pattern scaled =
      op<Multiply>(total, literal(Literal::from_double(dtype, 1.0 / double(form.r * form.c))))
          .typed({dtype, {1, 1}});
  if (form.keep == KeepDims::yes) return scaled;
  return exactly(Reshape{Shape{}}, scaled).typed({dtype, {}});
}

TEST(ExpandMean, EveryForm_BecomesExactlyTheRegion) {
  for (const Form& form : forms()) {
    const Program source = mean_of(form);
    SCOPED_TRACE(print(source));
    const PassResult result = expand_mean().run(source);
    const Program& after = result.program;
    Explanation why;
    EXPECT_TRUE(match(after, Uses(after), after.outputs()[0].value, region(form), &why))
        << why.text;
    const std::int64_t count = form.keep == KeepDims::yes ? 5 : 6;
    ASSERT_EQ(std::ssize(after.nodes()), count);
    ASSERT_EQ(result.regions.size(), 1u);
    EXPECT_EQ(result.regions[0].source, std::vector<std::int64_t>{0});
    EXPECT_EQ(std::ssize(result.regions[0].emitted), count);
    EXPECT_EQ(result.regions[0].terminal, ValueId::node(count - 1));
    EXPECT_EQ(result.regions[0].numerics,
              (Numerics{.sign_of_zero = true, .reassociates = true, .ulp = 1}));
  }
}

// () and (1,1) never satisfy each other.
TEST(ExpandMean, OtherFormOfKeepdims_DoesNotMatch) {
  for (const Form& form : forms()) {
    Form other = form;
    other.keep = form.keep == KeepDims::yes ? KeepDims::no : KeepDims::yes;
    const Program after = expand_mean().run(mean_of(form)).program;
    EXPECT_FALSE(match(after, Uses(after), after.outputs()[0].value, region(other)));
    EXPECT_FALSE(after.type(after.outputs()[0].value) ==
                 mean_of(other).type(mean_of(other).outputs()[0].value));
  }
}

TEST(ExpandMean, EveryForm_ComputesTheMean) {
  for (const Form& form : forms()) {
    const Program after = expand_mean().run(mean_of(form)).program;
    SCOPED_TRACE(print(after));
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::vector<Tensor> inputs = testing::draw_inputs(after, testing::Draw::mixed, seed);
      long double total = 0;
      long double magnitude = 0;
      for (const double element : inputs[0].to_doubles()) {
        total += element;
        magnitude += std::abs(element);
      }
      const auto count = static_cast<long double>(form.r * form.c);
      const double eps = std::ldexp(1.0, -mantissa_bits(form.dtype));
      const double got = interpret(after, inputs)[0].to_doubles()[0];
      EXPECT_NEAR(got, double(total / count), 8 * eps * double(magnitude / count));
    }
  }
}

// The neighbour of the class {reassociates}: the mean is 0, but a row's sum is not representable.
TEST(ExpandMean, IntermediateSumOverflows_GivesNaN) {
  const Form form{DType::f32, 2, 2, KeepDims::no, {0, 1}};
  const Program source = mean_of(form);
  const std::vector<Tensor> inputs = {Tensor::of<float>({2, 2}, {3e38F, 3e38F, -3e38F, -3e38F})};
  EXPECT_EQ(interpret(source, inputs)[0], Tensor::scalar(0.0F));
  EXPECT_TRUE(interpret(expand_mean().run(source).program, inputs)[0].element(0).is_nan());
}

TEST(ExpandMean, TwoMeans_GiveTwoRegionsInProgramOrderWithOrigins) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {3, 5}}));
  const Var y = -x;
  const Var first = mean(y, {0, 1}, KeepDims::yes);
  const Var second = mean(x, {0, 1}, KeepDims::yes);
  builder.output("z", (first + second).id());
  const Program source = builder.finish().with_fresh_origins();
  const PassResult result = expand_mean().run(source);
  ASSERT_EQ(result.regions.size(), 2u);
  EXPECT_EQ(result.regions[0].source, std::vector<std::int64_t>{1});
  EXPECT_EQ(result.regions[0].emitted, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(result.regions[0].origin, 1);
  EXPECT_EQ(result.regions[1].source, std::vector<std::int64_t>{2});
  EXPECT_EQ(result.regions[1].emitted, (std::vector<std::int64_t>{6, 7, 8, 9, 10}));
  EXPECT_EQ(result.regions[1].origin, 2);
  const std::vector<Origin> origins = {0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3};
  EXPECT_TRUE(std::ranges::equal(result.program.origins(), origins));
}

TEST(ExpandMean, TwoOffenders_AreListedWithNodeClauseAndCategory) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {Dim::symbol("B"), 5}}));
  const Var y(builder, builder.input("y", {DType::bf16, {3, 5}}));
  builder.output("a", mean(x).id());
  builder.output("b", mean(y).id());
  const Program source = builder.finish();
  try {
    expand_mean().run(source);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::unresolved_symbolic_shape);
    EXPECT_EQ(error.node(), "%0 mulgrad.mean");
    EXPECT_THAT(error.message(),
                HasSubstr("%0 mulgrad.mean: clause 4: unresolved_symbolic_shape: "));
    EXPECT_THAT(error.message(),
                HasSubstr("; %1 mulgrad.mean: clause 5: dtype_not_differentiable: "));
  }
}

// f16 has 2^-24 and no less: 1/2^25 is halfway to zero and goes to the even one.
TEST(ExpandMean, ReciprocalInTheDType_IsZeroFromTheFirstSuchCountOn) {
  constexpr std::int64_t kFirst = std::int64_t{1} << 25;
  for (const auto& [columns, clause] : {std::pair{kFirst - 1, "clause 5"}, {kFirst, "clause 4"}}) {
    const Program source = mean_of({DType::f16, 1, columns, KeepDims::no, {0, 1}});
    EXPECT_THAT(expand_mean().explain(source), ::testing::ElementsAre(HasSubstr(clause)));
  }
}

TEST(ExpandMean, BoundProgram_Expands) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {Dim::symbol("B"), 5}}));
  builder.output("m", mean(x).id());
  const Program bound = bind(builder.finish(), {{"B", 3}});
  EXPECT_EQ(expand_mean().run(bound).program,
            expand_mean().run(mean_of({DType::f64, 3, 5, KeepDims::no, {0, 1}})).program);
}

TEST(ExpandMean, Explain_HasALinePerMean) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {3, 5}}));
  mean(x, {0});
  const Var rows = mean(x, {1}, KeepDims::yes);
  builder.output("m", mean(rows).id());
  const Program source = builder.finish();
  const std::string dead = "%0 mean: no output or capture depends on it";
  const std::string partial =
      "%1 mean: clause 3: unsupported_reduction: found a partial reduction over axes [1], expected "
      "axes [0, 1]";
  EXPECT_THAT(
      expand_mean().explain(source),
      ::testing::ElementsAre(dead, partial,
                             "%2 mean: every clause holds, but not for every mean of the program"));
  EXPECT_THAT(expand_mean(OutsideDomain::leave).explain(source),
              ::testing::ElementsAre(dead, partial, "%2 mean: rewritten by expand_mean"));
}

TEST(ExpandMean, LeavingWhatIsOutside_ExpandsTheOthers) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {3, 5}}));
  const Var y(builder, builder.input("y", {DType::f64, {2, 3, 5}}));
  const Var z(builder, builder.input("z", {DType::bf16, {3, 5}}));
  builder.output("inside", mean(x).id());
  builder.output("rows", mean(x, {1}).id());
  builder.output("rank", mean(y).id());
  builder.output("dtype", mean(z).id());
  const Program source = builder.finish();
  const Pass pass = expand_mean(OutsideDomain::leave);
  EXPECT_TRUE(pass.leaves.empty());
  const PassResult result = pass.run(source);
  ASSERT_EQ(result.regions.size(), 1u);
  EXPECT_EQ(result.regions[0].source, std::vector<std::int64_t>{0});
  std::vector<Node> means;
  for (const Node& node : result.program.nodes()) {
    if (std::holds_alternative<Mean>(node.op)) means.push_back(node);
  }
  EXPECT_EQ(means, std::vector<Node>(source.nodes().begin() + 1, source.nodes().end()));
  EXPECT_TRUE(testing::same_values(source, result.program, pass.numerics));
  // Nothing inside: equal, and said to be.
  EXPECT_FALSE(pass.run(result.program).changed);
  EXPECT_EQ(pass.run(result.program).program, result.program);
  // Who asks for all gets an error, whatever else there is.
  EXPECT_THROW(expand_mean().run(source), Error);
}

TEST(ExpandMean, OtherSlots_AreRefused) {
  const std::vector<Pass> passes = {expand_mean()};
  const Program source = mean_of({DType::f64, 3, 5, KeepDims::no, {0, 1}});
  EXPECT_TRUE(run_passes(source, Slot::forward, passes).passes[0].changed);
  for (const Slot slot : {Slot::derivative, Slot::update}) {
    try {
      run_passes(source, slot, passes);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    }
  }
}

TEST(ExpandMean, LeavesNoMean_IsHeld) {
  const Property property = expand_mean().leaves.at(0);
  const Program source = mean_of({DType::f64, 3, 5, KeepDims::no, {0, 1}});
  EXPECT_EQ(property.violation(source), "found %0 mulgrad.mean");
  EXPECT_EQ(property.violation(expand_mean().run(source).program), std::nullopt);
}

// What clauses 1, 3, 5 and 6 leave to the builder.
TEST(ExpandMean, UnbuildableMeans_AreRefusedByTheBuilder) {
  const auto category_of = [](Type type, const Op& op, std::size_t operands) {
    Builder builder;
    const ValueId x = builder.input("x", std::move(type));
    try {
      builder.add(op, std::vector<Operand>(operands, x));
    } catch (const Error& error) {
      EXPECT_EQ(error.node(), "%0 mulgrad.mean");
      EXPECT_TRUE(builder.nodes().empty());
      return error.category();
    }
    return Category::parse_error;
  };
  const Type f64{DType::f64, {3, 5}};
  EXPECT_EQ(category_of(f64, Mean{{0, 1}, false}, 2), Category::arity_mismatch);
  EXPECT_EQ(category_of(f64, Mean{{0, 0}, false}, 1), Category::reduction_shape_mismatch);
  EXPECT_EQ(category_of(f64, Mean{{0, -2}, false}, 1), Category::reduction_shape_mismatch);
  EXPECT_EQ(category_of(f64, Mean{{0, 2}, false}, 1), Category::reduction_shape_mismatch);
  EXPECT_EQ(category_of(f64, Mean{{-3, 0}, false}, 1), Category::reduction_shape_mismatch);
  EXPECT_EQ(category_of({DType::i32, {3, 5}}, Mean{{0, 1}, false}, 1),
            Category::dtype_not_differentiable);
}

}  // namespace
}  // namespace mulgrad
