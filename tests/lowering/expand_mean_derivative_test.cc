#include "lowering/expand_mean_derivative.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/derive.h"
#include "core/expr.h"
#include "core/interpreter.h"
#include "core/rewrite/pass_manager.h"
#include "core/rewrite/pattern.h"
#include "core/text.h"
#include "lowering/expand_mean.h"
#include "tests/support/op_cases.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

using namespace pattern;
using mean_derivative::Facts;
using mean_derivative::Verdict;

// --- the clauses, one by one, on facts that no builder need be able to make ---

Facts holding(DType dtype = DType::f64, std::int64_t r = 3, std::int64_t c = 5) {
  Facts facts;
  facts.b = ValueId::node(0);
  facts.g = ValueId::input(0);
  facts.d = Literal::from_int(dtype, r * c);
  facts.q_type = facts.b_type = {dtype, {r, c}};
  facts.g_type = {dtype, {1, 1}};
  facts.b_uses = 1;
  return facts;
}

using Clause = Verdict (*)(const Facts&);

// Does the clause fail once `change` was done to facts for which it holds?
void expect_failure(Clause clause, const std::function<void(Facts&)>& change) {
  Facts facts = holding();
  EXPECT_EQ(clause(facts), std::nullopt);
  change(facts);
  EXPECT_NE(clause(facts), std::nullopt);
}

TEST(MeanDerivativeClause1, NeedsAValueOverAFiniteLiteral) {
  const Clause clause = mean_derivative::clause1_divided_by_finite_literal;
  expect_failure(clause, [](Facts& f) { f.b.reset(); });
  expect_failure(clause, [](Facts& f) { f.d.reset(); });
  expect_failure(clause, [](Facts& f) { f.d = Literal::infinity(DType::f64); });
  expect_failure(clause, [](Facts& f) { f.d = Literal::infinity(DType::f64, true); });
  expect_failure(clause, [](Facts& f) { f.d = Literal::of(std::nan("")); });
}

TEST(MeanDerivativeClause2, NeedsABroadcast) {
  expect_failure(mean_derivative::clause2_broadcast_of_the_program, [](Facts& f) { f.g.reset(); });
}

TEST(MeanDerivativeClause3, NeedsAStaticFloatMatrix) {
  const Clause clause = mean_derivative::clause3_static_float_matrix;
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(clause(holding(dtype)), std::nullopt);
  }
  for (const DType dtype : {DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    expect_failure(clause, [&](Facts& f) { f.b_type.dtype = dtype; });
  }
  const Dim batch = Dim::symbol("B");
  for (const Shape& shape : {Shape{15}, Shape{}, Shape{1, 3, 5}, Shape{0, 5}, Shape{3, 0},
                             Shape{batch, 5}, Shape{3, batch}}) {
    expect_failure(clause, [&](Facts& f) { f.b_type.shape = shape; });
  }
}

TEST(MeanDerivativeClause4, NeedsASingleElementSource) {
  const Clause clause = mean_derivative::clause4_single_element_source;
  expect_failure(clause, [](Facts& f) { f.g_type.dtype = DType::f32; });
  for (const Shape& shape : {Shape{1, 5}, Shape{3, 1}, Shape{}, Shape{1}, Shape{1, 1, 1}}) {
    expect_failure(clause, [&](Facts& f) { f.g_type.shape = shape; });
  }
}

TEST(MeanDerivativeClause5, NeedsTheRoundedCount) {
  const Clause clause = mean_derivative::clause5_divisor_is_the_count;
  for (const double d : {16.0, 8.0, 15.0000001, -15.0, 0.0}) {
    expect_failure(clause, [&](Facts& f) { f.d = Literal::of(d); });
  }
  expect_failure(clause, [](Facts& f) { f.d = Literal::of(15.0F); });
  EXPECT_EQ(clause(holding(DType::f32, 4097, 4097)), std::nullopt);
  Facts large = holding(DType::f32, 4097, 4097);
  EXPECT_EQ(large.d, Literal::of(16785408.0F));
  large.d = Literal::of(16785410.0F);
  EXPECT_NE(clause(large), std::nullopt);
  const std::int64_t half = std::int64_t{1} << 40;
  Facts overflowing = holding(DType::f64, half, 1);
  overflowing.b_type.shape[1] = half;
  for (const double d : {std::ldexp(1.0, 80), 0.0}) {  // the product, and what wraps around
    overflowing.d = Literal::of(d);
    EXPECT_NE(clause(overflowing), std::nullopt);
  }
}

TEST(MeanDerivativeClause6, NeedsTheBroadcastsType) {
  const Clause clause = mean_derivative::clause6_quotient_type;
  expect_failure(clause, [](Facts& f) { f.q_type.shape = {5, 3}; });
  expect_failure(clause, [](Facts& f) { f.q_type.dtype = DType::f32; });
}

TEST(MeanDerivativeClause7, NeedsOneUse) {
  for (const int uses : {0, 2}) {
    expect_failure(mean_derivative::clause7_only_use, [&](Facts& f) { f.b_uses = uses; });
  }
}

// With clauses k..7 broken, k is the one that is named.
TEST(MeanDerivativeClauses, FirstFailure_IsJudgedInOrder) {
  const std::vector<std::function<void(Facts&)>> breaks = {
      [](Facts& f) { f.d = Literal::infinity(f.b_type.dtype); },
      [](Facts& f) { f.g.reset(); },
      [](Facts& f) { f.b_type.dtype = DType::bf16; },
      [](Facts& f) { f.g_type.shape = {}; },
      [](Facts& f) {
        if (f.d->is_finite()) f.d = Literal::from_int(f.b_type.dtype, 16);
      },
      [](Facts& f) {
        f.q_type.shape = {5, 3};
      },
      [](Facts& f) { f.b_uses = 2; },
  };
  EXPECT_EQ(mean_derivative::first_failure(holding()), std::nullopt);
  for (std::size_t first = 0; first < breaks.size(); ++first) {
    Facts facts = holding();
    for (std::size_t i = first; i < breaks.size(); ++i) breaks[i](facts);
    EXPECT_THAT(mean_derivative::first_failure(facts).value_or(""),
                ::testing::StartsWith("clause " + std::to_string(first + 1) + ":"));
  }
}

// --- traced and hand-built chains ---

struct Form {
  DType dtype;
  std::int64_t r;
  std::int64_t c;
  KeepDims keep;
};

std::vector<Form> forms() {
  std::vector<Form> result;
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{4, 4}, {3, 5}, {5, 3}, {1, 1}};
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [r, c] : sizes) {
      for (const KeepDims keep : {KeepDims::no, KeepDims::yes}) {
        result.push_back({dtype, r, c, keep});
      }
    }
  }
  return result;
}

Program traced(const Form& form) {
  Builder builder;
  const Var x(builder, builder.input("x", {form.dtype, {form.r, form.c}}));
  builder.output("m", mean(x, {0, 1}, form.keep).id());
  return derive(builder.finish(), {"m"}, {"x"}).derivative;
}

// The same by hand, without provenance.
Program by_hand(const Form& form, const std::string& name) {
  Builder builder(name);
  const Shape seed_shape = form.keep == KeepDims::yes ? Shape{1, 1} : Shape{};
  const Var seed(builder, builder.input("m", {form.dtype, seed_shape}, InputRole::seed));
  const Var b = broadcast_in_dim(reshape(seed, {1, 1}), {form.r, form.c}, {0, 1});
  builder.output("grad.x", (b / (form.r * form.c)).id());
  return builder.finish();
}

// The region, with every type spelled out here; `g` is its source.
Pattern region(const Form& form, const Pattern& g) {
  const DType dtype = form.dtype;
  const Literal one = Literal::one(dtype);
  const auto ones = [&](Shape shape) {
    return exactly(Fill{one, shape}).typed({dtype, shape}).one_use();
  };
  const auto product = [&](Pattern a, Pattern b, Shape shape) {
    return exactly(DotGeneral{{}, {}, {1}, {0}, dtype}, a, b).typed({dtype, std::move(shape)});
  };
  const Pattern column = product(ones({form.r, 1}), g, {form.r, 1});
  const Pattern spread = product(column, ones({1, form.c}), {form.r, form.c});
  const Literal scale = Literal::from_double(dtype, 1.0 / double(form.r * form.c));
  return op<Multiply>(spread, literal(scale)).typed({dtype, {form.r, form.c}});
}

TEST(ExpandMeanDerivative, TracedMean_BecomesExactlyTheRegion) {
  for (const Form& form : forms()) {
    const Program source = traced(form);
    SCOPED_TRACE(print(source));
    const PassResult result = expand_mean_derivative().run(source);
    const Program& after = result.program;
    const bool kept = form.keep == KeepDims::yes;
    const ValueId seed = ValueId::input(0);
    const Pattern g = kept ? value(seed) : exactly(Reshape{Shape{1, 1}}, value(seed));
    Explanation why;
    EXPECT_TRUE(match(after, Uses(after), after.outputs()[0].value, region(form, g), &why))
        << why.text;
    ASSERT_EQ(after.nodes().size(), kept ? 5u : 6u);
    EXPECT_EQ(std::holds_alternative<Reshape>(after.nodes()[0].op), !kept);
    EXPECT_TRUE(std::ranges::equal(after.inputs(), source.inputs()));
    EXPECT_EQ(after.outputs()[0].name, source.outputs()[0].name);
    ASSERT_EQ(result.regions.size(), 1u);
    EXPECT_EQ(result.regions[0].numerics, (Numerics{.sign_of_zero = true, .ulp = 1}));
    EXPECT_EQ(result.regions[0].terminal, after.outputs()[0].value);
    EXPECT_EQ(result.regions[0].emitted.size(), 5u);
    EXPECT_EQ(source, traced(form));  // the source is not touched
    EXPECT_EQ(expand_mean_derivative().run(traced(form)).program, after);
  }
}

TEST(ExpandMeanDerivative, HandBuiltChain_ExpandsAsTheTracedOne) {
  for (const Form& form : forms()) {
    const Program source = traced(form);
    const Program hand = by_hand(form, source.name());
    EXPECT_EQ(hand, source);
    EXPECT_TRUE(std::ranges::all_of(hand.origins(), [](Origin o) { return o == kNoOrigin; }));
    EXPECT_EQ(expand_mean_derivative().run(hand).program,
              expand_mean_derivative().run(source).program);
  }
}

TEST(ExpandMeanDerivative, DerivativeOfALargerLoss_FindsItsChain) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {3, 2}}));
  const Var w(builder, builder.input("w", {DType::f64, {2, 4}}));
  const Var y(builder, builder.input("y", {DType::f64, {3, 4}}));
  const Var residual = matmul(x, w) - y;
  builder.output("loss", mean(residual * residual).id());
  const Program source = derive(builder.finish(), {"loss"}, {"w", "x"}).derivative;
  const std::vector<Pass> passes = {expand_mean_derivative()};
  const PipelineResult result = run_passes(source, Slot::derivative, passes);
  ASSERT_EQ(result.passes[0].regions.size(), 1u);
  EXPECT_EQ(result.numerics, (Numerics{.sign_of_zero = true, .ulp = 1}));
  for (const Node& node : result.program.nodes()) {
    EXPECT_NE(kind_of(node.op), OpKind::Divide);
    EXPECT_NE(kind_of(node.op), OpKind::BroadcastInDim);
  }
  EXPECT_TRUE(testing::same_values(source, result.program, result.numerics));
}

TEST(ExpandMeanDerivative, TwoChains_GiveTwoRegionsInProgramOrderWithOrigins) {
  Builder builder;
  const Type type{DType::f64, {1, 1}};
  const Var s(builder, builder.input("s", type, InputRole::seed));
  const Var t(builder, builder.input("t", type, InputRole::seed));
  const Var a = broadcast_in_dim(s, {2, 2}, {0, 1});
  const Var b = broadcast_in_dim(t, {3, 1}, {0, 1});
  const Var first = b / 3;
  const Var second = a / 4;
  builder.output("grad.x", second.id());
  builder.output("grad.y", first.id());
  const Program source = builder.finish().with_fresh_origins();
  const PassResult result = expand_mean_derivative().run(source);
  ASSERT_EQ(result.regions.size(), 2u);
  EXPECT_EQ(result.regions[0].source, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(result.regions[0].emitted, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(result.regions[0].origin, 2);
  EXPECT_EQ(result.regions[1].source, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(result.regions[1].emitted, (std::vector<std::int64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(result.regions[1].origin, 3);
  const std::vector<Origin> origins = {2, 2, 2, 2, 2, 3, 3, 3, 3, 3};
  EXPECT_TRUE(std::ranges::equal(result.program.origins(), origins));
}

// The declared numerics, over finite g of every kind: one ulp, and a zero's sign.
TEST(ExpandMeanDerivative, FiniteSources_DifferByOneUlpAtMost) {
  bool inexact = false;
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::vector<Literal> sources;
    for (const Literal& literal : testing::special_values(dtype)) {
      if (literal.is_finite()) sources.push_back(literal);
    }
    for (int i = 0; i < 40; ++i) {
      sources.push_back(
          Literal::from_double(dtype, std::sin(i + 1) * std::ldexp(1.0, 6 * i - 120)));
    }
    for (const std::int64_t r : {1, 3, 7, 11, 49}) {
      for (const std::int64_t c : {1, 3, 5, 41}) {
        const Program before = by_hand({dtype, r, c, KeepDims::yes}, "main");
        const Program after = expand_mean_derivative().run(before).program;
        for (const Literal& source : sources) {
          const std::vector<Tensor> inputs = {Tensor::filled(source, {1, 1})};
          const Tensor want = interpret(before, inputs)[0];
          const Tensor got = interpret(after, inputs)[0];
          for (std::int64_t i = 0; i < want.elements(); ++i) {
            const std::uint64_t distance = testing::ulp_distance(got.element(i), want.element(i));
            ASSERT_LE(distance, 1u)
                << source.to_string() << " / " << r * c << ": " << got.element(i).to_string();
            inexact = inexact || distance == 1;
          }
        }
      }
    }
  }
  EXPECT_TRUE(inexact);  // else ulp(1) would be declared for nothing
}

TEST(ExpandMeanDerivative, NegativeZero_MayLoseItsSign) {
  const Program before = by_hand({DType::f32, 2, 2, KeepDims::yes}, "main");
  const Program after = expand_mean_derivative().run(before).program;
  const std::vector<Tensor> inputs = {Tensor::of<float>({1, 1}, {-0.0F})};
  EXPECT_TRUE(std::signbit(interpret(before, inputs)[0].to_doubles()[0]));
  EXPECT_EQ(interpret(after, inputs)[0].to_doubles()[0], 0.0);
}

TEST(ExpandMeanDerivative, Explain_HasALinePerDivideAndPerUndividedBroadcast) {
  Builder builder;
  const Var g(builder, builder.input("g", {DType::f64, {1, 1}}, InputRole::seed));
  const Var good = broadcast_in_dim(g, {3, 5}, {0, 1}) / 15;
  const Var bad = broadcast_in_dim(g, {3, 5}, {0, 1}) / 16;
  const Var loose = broadcast_in_dim(g, {3, 5}, {0, 1}) * 2;
  const Var swapped = 15 / broadcast_in_dim(g, {3, 5}, {0, 1});
  builder.output("y", (good + bad + loose + swapped).id());
  EXPECT_THAT(expand_mean_derivative().explain(builder.finish()),
              ::testing::ElementsAre(
                  "%1 divide: rewritten by expand_mean_derivative",
                  "%3 divide: clause 5: d = 16.0, r*c = 15",
                  "%4 broadcast_in_dim: clause 1: no divide reads it",
                  "%7 divide: clause 1: operand 0: found the literal 1.5e+01, expected a value"));
}

TEST(ExpandMeanDerivative, OtherSlots_AreRefused) {
  const std::vector<Pass> passes = {expand_mean_derivative()};
  const Program source = traced(forms()[0]);
  EXPECT_TRUE(run_passes(source, Slot::derivative, passes).passes[0].changed);
  for (const Slot slot : {Slot::forward, Slot::update}) {
    try {
      run_passes(source, slot, passes);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), Category::expansion_contract_violation);
    }
  }
}

// Both passes over a chain as long as any: nothing on the way recurses.
TEST(ExpandMeanDerivative, MillionNodes_AreRewrittenWithoutRecursion) {
  constexpr int kLength = 1'000'000;
  Builder builder;
  Var x(builder, builder.input("x", {DType::f32, {1, 1}}));
  for (int i = 0; i < kLength; ++i) x = -x;
  builder.output("m", mean(broadcast_in_dim(x, {2, 2}, {0, 1}) / 4).id());
  const Program source = builder.finish();
  Pass everywhere = expand_mean_derivative();
  everywhere.accepts = {Slot::forward};
  const std::vector<Pass> passes = {expand_mean(), everywhere};
  const PipelineResult result = run_passes(source, Slot::forward, passes);
  EXPECT_EQ(std::ssize(result.program.nodes()), kLength + 5 + 6);
  EXPECT_EQ(result.passes[0].regions.size(), 1u);
  EXPECT_EQ(result.passes[1].regions.size(), 1u);
}

}  // namespace
}  // namespace mulgrad
