#include "core/rewrite/pattern.h"

#include <gtest/gtest.h>

#include "core/expr.h"

namespace mulgrad {
namespace {

using namespace pattern;

// g -> b = broadcast(g) -> q = b / 15, with b read a second time by `twice`.
struct Chain {
  explicit Chain(bool twice) {
    Builder builder;
    const Var g(builder, builder.input("g", {DType::f64, {1, 1}}));
    const Var b = broadcast_in_dim(g, {3, 5}, {0, 1});
    const Var q = b / 15;
    builder.output("q", q.id());
    if (twice) builder.output("b", b.id());
    program = builder.finish();
  }
  bool matches(const Pattern& wanted, Explanation* why = nullptr) const {
    return match(program, Uses(program), q, wanted, why);
  }
  std::string reason(const Pattern& wanted) const {
    Explanation why;
    EXPECT_FALSE(matches(wanted, &why));
    return why.text;
  }

  ValueId g = ValueId::input(0);
  ValueId b = ValueId::node(0);
  ValueId q = ValueId::node(1);
  Program program;
};

const Literal kFifteen = Literal::from_int(DType::f64, 15);

TEST(Pattern, Nested_CapturesEveryLevel) {
  const Chain chain(false);
  std::optional<ValueId> g;
  std::optional<ValueId> b;
  std::optional<ValueId> q;
  std::optional<Literal> d;
  ASSERT_TRUE(chain.matches(
      op<Divide>(op<BroadcastInDim>(any(&g)).one_use().capture(&b), literal(&d)).capture(&q)));
  EXPECT_EQ(g, chain.g);
  EXPECT_EQ(b, chain.b);
  EXPECT_EQ(q, chain.q);
  EXPECT_EQ(d, kFifteen);
}

TEST(Pattern, LastPartFails_CapturesNothing) {
  const Chain chain(false);
  std::optional<ValueId> g;
  std::optional<ValueId> b;
  EXPECT_FALSE(chain.matches(op<Divide>(op<BroadcastInDim>(any(&g)).capture(&b),
                                        literal(Literal::from_int(DType::f64, 16)))));
  EXPECT_FALSE(g.has_value());
  EXPECT_FALSE(b.has_value());
}

TEST(Pattern, OneUse_CountsOutputsAndCaptures) {
  const Pattern wanted = op<Divide>(op<BroadcastInDim>(any()).one_use(), literal());
  EXPECT_TRUE(Chain(false).matches(wanted));
  EXPECT_EQ(Chain(true).reason(wanted),
            "operand 0: found %0 stablehlo.broadcast_in_dim, expected one use of it instead of 2");
}

TEST(Pattern, OneUse_CountsARepeatedOperandTwice) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  const Var y = -x;
  builder.output("z", (y * y).id());
  const Program program = builder.finish();
  const Uses uses(program);
  EXPECT_TRUE(match(program, uses, ValueId::node(1), op<Multiply>(any(), any())));
  EXPECT_FALSE(match(program, uses, ValueId::node(1), op<Multiply>(any().one_use(), any())));
}

TEST(Pattern, Failure_NamesPlaceFoundAndExpected) {
  const Chain chain(false);
  EXPECT_EQ(chain.reason(op<Multiply>(any(), any())),
            "found %1 stablehlo.divide, expected stablehlo.multiply");
  EXPECT_EQ(chain.reason(op<Divide>(any(), any())),
            "operand 1: found the literal 1.5e+01, expected a value");
  EXPECT_EQ(chain.reason(op<Divide>(literal(), any())),
            "operand 0: found %0 stablehlo.broadcast_in_dim, expected a literal");
  EXPECT_EQ(chain.reason(op<Divide>(op<BroadcastInDim>(op<Add>(any(), any())), literal())),
            "operand 0: operand 0: found %arg0 \"g\", expected stablehlo.add");
  EXPECT_EQ(chain.reason(op<Divide>(any(), literal(Literal::from_int(DType::f32, 15)))),
            "operand 1: found the literal 1.5e+01, expected the literal 1.5e+01");
  EXPECT_EQ(chain.reason(op<Divide>(value(chain.g), literal())),
            "operand 0: found %0 stablehlo.broadcast_in_dim, expected %arg0 \"g\"");
  EXPECT_EQ(chain.reason(any().typed({DType::f64, {5, 3}})),
            "found %1 stablehlo.divide, expected a value of type tensor<5x3xf64>");
  EXPECT_EQ(chain.reason(op<Divide>(any())), "found %1 stablehlo.divide, expected 1 operands");
}

TEST(Pattern, Exactly_ComparesAttributes) {
  const Chain chain(false);
  const Shape shape{3, 5};
  EXPECT_TRUE(chain.matches(
      op<Divide>(exactly(BroadcastInDim{shape, {0, 1}}, value(chain.g)), literal(kFifteen))));
  EXPECT_EQ(chain.reason(op<Divide>(exactly(BroadcastInDim{shape, {1, 0}}, any()), literal())),
            "operand 0: found %0 stablehlo.broadcast_in_dim, expected stablehlo.broadcast_in_dim "
            "with other attributes");
}

TEST(Pattern, Where_TakesAConditionOnTheValue) {
  const Chain chain(false);
  const auto is_output = [](const Program& program, ValueId value) {
    return program.outputs()[0].value == value;
  };
  EXPECT_TRUE(chain.matches(any().where("an output", is_output)));
  EXPECT_EQ(chain.reason(op<Divide>(any().where("an output", is_output), any())),
            "operand 0: found %0 stablehlo.broadcast_in_dim, expected an output");
}

TEST(Pattern, VariadicOp_ComparesTheNumberOfOperands) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2}}));
  const Var parts[] = {x, x, x};
  builder.output("y", concatenate(parts, 0).id());
  const Program program = builder.finish();
  const Uses uses(program);
  EXPECT_TRUE(match(program, uses, ValueId::node(0), op<Concatenate>(any(), any(), any())));
  EXPECT_FALSE(match(program, uses, ValueId::node(0), op<Concatenate>(any(), any())));
}

}  // namespace
}  // namespace mulgrad
