#include "core/rewrite/rewriter.h"

#include <gtest/gtest.h>

#include "core/rewrite/pattern.h"

namespace mulgrad {
namespace {

using namespace pattern;

// %0 = -x, %1 = |%0|, %2 = x + x, %3 = %1 * %2; output %3, captured %2.
Program sample() {
  Builder builder("sample");
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  builder.set_origin(7);
  const Var magnitude = abs(-x);
  builder.set_origin(8);
  const Var doubled = x + x;
  builder.output("y", (magnitude * doubled).id());
  builder.output("c0", doubled.id(), OutputRole::capture);
  return builder.finish();
}

// |-x| becomes max(x, -x), in three nodes.
Replacement without_abs() {
  return {1, {0}, {.sign_of_zero = true}, [](Rewriter& rewriter) {
            const Var x = rewriter.at(ValueId::input(0));
            return maximum(x, -x) + 0.0;
          }};
}

TEST(Rewriter, NoReplacement_IsTheSourceItself) {
  const Program source = sample();
  const PassResult result = apply(source, "nothing", {});
  EXPECT_FALSE(result.changed);
  EXPECT_TRUE(result.regions.empty());
  EXPECT_EQ(result.program, source);
}

TEST(Rewriter, CopyOfEveryNode_IsEqualWithEqualOrigins) {
  const Program source = sample();
  Rewriter rewriter(source);
  for (std::int64_t node = 0; node < std::ssize(source.nodes()); ++node) rewriter.copy(node);
  const Program copy = rewriter.finish();
  EXPECT_EQ(copy, source);
  EXPECT_TRUE(std::ranges::equal(copy.origins(), source.origins()));
}

TEST(Rewriter, Replacement_StandsAtItsRootAndKeepsTheRest) {
  const Program source = sample();
  const Replacement replacements[] = {without_abs()};
  const PassResult result = apply(source, "without_abs", replacements);
  ASSERT_TRUE(result.changed);
  const Program& after = result.program;
  verify(after);
  EXPECT_EQ(after.name(), "sample");
  ASSERT_EQ(after.nodes().size(), 5u);
  const ValueId x = ValueId::input(0);
  const Pattern terminal = exactly(Add{}, op<Maximum>(value(x), op<Negate>(value(x))),
                                   literal(Literal::zero(DType::f32)));
  Explanation why;
  EXPECT_TRUE(match(after, Uses(after), after.outputs()[0].value,
                    op<Multiply>(terminal, op<Add>(value(x), value(x))), &why))
      << why.text;
  EXPECT_EQ(after.outputs()[1].value, ValueId::node(3));
  EXPECT_EQ(after.outputs()[1].role, OutputRole::capture);
  EXPECT_EQ(source, sample());  // the source is not touched
}

TEST(Rewriter, Replacement_ReportsItsRegion) {
  const Program source = sample();
  const Replacement replacements[] = {without_abs()};
  const PassResult result = apply(source, "without_abs", replacements);
  ASSERT_EQ(result.regions.size(), 1u);
  const Region& region = result.regions[0];
  EXPECT_EQ(region.pass, "without_abs");
  EXPECT_EQ(region.source, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(region.emitted, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(region.terminal, ValueId::node(2));
  EXPECT_EQ(region.numerics, (Numerics{.sign_of_zero = true}));
  EXPECT_EQ(region.origin, 7);
  const std::vector<Origin> expected = {7, 7, 7, 8, 8};
  EXPECT_TRUE(std::ranges::equal(result.program.origins(), expected));
}

TEST(Rewriter, ReplacementByAnExistingValue_EmitsNothing) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  builder.output("y", stop_gradient(x).id());
  const Program source = builder.finish();
  const Replacement replacements[] = {
      {0, {}, {}, [](Rewriter& rewriter) { return rewriter.operands(0)[0]; }}};
  const PassResult result = apply(source, "forget", replacements);
  EXPECT_TRUE(result.program.nodes().empty());
  EXPECT_TRUE(result.regions[0].emitted.empty());
  EXPECT_EQ(result.regions[0].terminal, ValueId::input(0));
  EXPECT_EQ(result.program.outputs()[0].value, ValueId::input(0));
}

TEST(Rewriter, SecondReplacementReadsTheFirst_SeesItsResult) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  builder.output("y", (-(-x)).id());
  const Program source = builder.finish();
  std::vector<Replacement> replacements;
  for (std::int64_t node = 0; node < 2; ++node) {
    replacements.push_back(
        {node, {}, {}, [node](Rewriter& rewriter) { return rewriter.operands(node)[0] * -1.0; }});
  }
  const PassResult result = apply(source, "negate", replacements);
  const Literal minus_one = Literal::from_int(DType::f32, -1);
  EXPECT_TRUE(match(result.program, Uses(result.program), result.program.outputs()[0].value,
                    op<Multiply>(op<Multiply>(value(ValueId::input(0)), literal(minus_one)),
                                 literal(minus_one))));
  EXPECT_EQ(result.regions.size(), 2u);
}

TEST(Rewriter, ConsumedNodesInAnyOrder_AreReportedAscendingWithTheRootLast) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  builder.output("y", (-abs(-x)).id());
  const Program source = builder.finish();
  const Replacement replacements[] = {
      {2, {1, 0}, {}, [](Rewriter& rewriter) { return -abs(rewriter.at(ValueId::input(0))); }}};
  EXPECT_EQ(apply(source, "even", replacements).regions[0].source,
            (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Rewriter, ConsumedNodeIsReadElsewhere_IsRefused) {
  const Program source = sample();
  Replacement replacement = without_abs();
  replacement.consumed.push_back(2);  // but %3 reads it
  const Replacement replacements[] = {replacement};
  EXPECT_THROW(apply(source, "wrong", replacements), Error);
}

TEST(RewriterDeathTest, TerminalOfAnotherType_Aborts) {
  const Program source = sample();
  const Replacement replacements[] = {{0, {}, {}, [](Rewriter& rewriter) {
                                         return reshape(rewriter.operands(0)[0], {2, 1});
                                       }}};
  EXPECT_DEATH(apply(source, "wrong", replacements), "rewriter.cc");
}

TEST(Numerics, Union_TakesTheLargerUlp) {
  const Numerics a{.sign_of_zero = true, .ulp = 1};
  const Numerics b{.reassociates = true, .ulp = 3};
  EXPECT_EQ(a | b, (Numerics{.sign_of_zero = true, .reassociates = true, .ulp = 3}));
  EXPECT_EQ((a | b).to_string(), "{sign_of_zero, reassociates, ulp(3)}");
  EXPECT_EQ(Numerics{}.to_string(), "{}");
}

TEST(Numerics, Allows_IsTheSubsetRelation) {
  const Numerics a{.sign_of_zero = true, .ulp = 2};
  EXPECT_TRUE(a.allows({}));
  EXPECT_TRUE(a.allows({.ulp = 2}));
  EXPECT_FALSE(a.allows({.ulp = 3}));
  EXPECT_FALSE(a.allows({.finite_only = true}));
  EXPECT_FALSE(a.allows({.needs_exact_product = true}));
  EXPECT_TRUE(Numerics::everything().allows(
      {.finite_only = true, .reassociates = true, .needs_exact_product = true, .ulp = 9}));
}

}  // namespace
}  // namespace mulgrad
