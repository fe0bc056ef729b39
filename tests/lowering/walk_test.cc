#include "lowering/walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "autodiff/derive.h"
#include "core/expr.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using testing::error_of;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Text = std::unique_ptr<std::string>;  // move-only on purpose
using Operands = std::span<const HandlerOperand<Text>>;

const Type kMatrix{DType::f32, {2, 2}};

// Values are texts such as "add(x,2.0e+00)"; calls are counted in a log of labels.
struct Machine {
  std::vector<std::string> log;
  HandlerRegistry<Text> registry;

  HandlerRegistry<Text>::Handler handler() {
    return [this](const HandlerContext& context, Operands operands) {
      log.push_back(context.label());
      std::string text(info(context.node().op).name);
      text += "(";
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (i > 0) text += ",";
        text += operands[i].is_literal() ? operands[i].literal().to_string() : *operands[i].value();
      }
      return std::make_unique<std::string>(text + ")");
    };
  }
  Machine& with(std::initializer_list<OpKind> kinds) {
    for (const OpKind kind : kinds) registry.add(kind, handler());
    return *this;
  }
  Lowered<Text> lower_it(const Program& program) {
    return lower(Artifact::untouched("forward", program), registry,
                 [](const InputContext& context) {
                   return std::make_unique<std::string>(context.input().name);
                 });
  }
};

TEST(Walk, Program_BecomesValues) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  Var y(builder, builder.input("y", kMatrix));
  const Var z = matmul(x + 2.0, y);
  builder.output("z", z.id());
  builder.output("again", z.id());
  builder.output("y", y.id());
  Machine machine;
  const auto lowered = machine.with({OpKind::Add, OpKind::DotGeneral}).lower_it(builder.finish());
  EXPECT_EQ(lowered.values.size(), 2u);
  EXPECT_EQ(*lowered.output(0), "DotGeneral(Add(x,2.0e+00),y)");
  EXPECT_EQ(*lowered.output(1), *lowered.output(0));
  EXPECT_EQ(*lowered.output(2), "y");
}

TEST(Walk, MissingHandlers_AreAllListedBeforeAnyRuns) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  builder.output("y", mean(exp(x + x)).id());
  exp(x);  // reaches nothing, so nobody asks for it
  Machine machine;
  machine.with({OpKind::Add});
  const Program program = builder.finish();
  const Error error = error_of([&] { machine.lower_it(program); });
  EXPECT_EQ(error.category(), Category::unsupported_operator);
  EXPECT_THAT(error.what(), HasSubstr("2 unsupported nodes"));
  EXPECT_THAT(error.what(), HasSubstr("forward:%1 stablehlo.exponential: no handler"));
  EXPECT_THAT(error.what(), HasSubstr("forward:%2 mulgrad.mean: no handler"));
  EXPECT_TRUE(machine.log.empty());
}

TEST(Walk, UnreachableNodes_AreNotLowered) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  exp(x);
  builder.output("y", (x + x).id());
  Machine machine;
  machine.with({OpKind::Add}).lower_it(builder.finish());
  EXPECT_THAT(machine.log, ElementsAre("forward:%1 stablehlo.add"));
}

TEST(Walk, HandlerErrors_KeepTheirTextAndNameTheNode) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  builder.output("y", exp(-x).id());
  const Program program = builder.finish();
  const auto check = [&](HandlerRegistry<Text>::Handler broken, const std::string& text) {
    Machine machine;
    machine.with({OpKind::Negate}).registry.add<Exponential>(std::move(broken));
    const Error error = error_of([&] { machine.lower_it(program); });
    EXPECT_EQ(error.category(), Category::handler_contract_violation);
    EXPECT_EQ(error.node(), "forward:%1 stablehlo.exponential");
    EXPECT_THAT(error.what(), HasSubstr(text));
  };
  check([](const HandlerContext&, Operands) -> Text { throw std::runtime_error("no such wire"); },
        "no such wire");
  check([](const HandlerContext&,
           Operands) -> Text { throw Error(Category::dtype_mismatch, "found f32"); },
        "dtype_mismatch: found f32");
  check([](const HandlerContext&, Operands) -> Text { throw 7; }, "unknown type");
  check([](const HandlerContext&, Operands) { return Text(); }, "returned nothing");
}

TEST(Walk, InputHandlerErrors_NameTheInput) {
  Builder builder;
  builder.output("y", builder.input("x", kMatrix));
  const Artifact artifact = Artifact::untouched("update", builder.finish());
  const Error error = error_of([&] {
    lower<Text>(artifact, {}, [](const InputContext&) -> Text { throw std::runtime_error("no"); });
  });
  EXPECT_EQ(error.category(), Category::handler_contract_violation);
  EXPECT_EQ(error.node(), "update:%arg0 \"x\"");
}

TEST(LoweringOrder, SingleUseProducer_StandsBeforeItsConsumer) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  const Var t = transpose(x);  // %0, read once, far below
  const Var a = x + x;         // %1, read twice
  const Var b = a * a;         // %2
  const Var c = exp(b);        // %3
  builder.output("y", matmul(t, c).id());
  EXPECT_THAT(lowering_order(builder.finish()), ElementsAre(1, 2, 3, 0, 4));
}

// What a window of two sees of the gradients of mean(transpose(a) @ (b + b)).
TEST(LoweringOrder, GradientProduct_StandsBehindItsTranspose) {
  Builder builder;
  const Var a(builder, builder.input("a", {DType::f64, {3, 2}}));
  const Var b(builder, builder.input("b", {DType::f64, {3, 4}}));
  builder.output("loss", mean(matmul(transpose(a), b + b)).id());
  const Program forward = builder.finish();
  for (const std::vector<std::string>& wrt :
       std::vector<std::vector<std::string>>{{"a"}, {"b"}, {"a", "b"}}) {
    const Program gradient = derive(forward, {"loss"}, wrt).derivative;
    const std::vector<std::int64_t> order = lowering_order(gradient);
    std::size_t pairs = 0;
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Node& node = gradient.node(ValueId::node(order[i]));
      if (!std::holds_alternative<DotGeneral>(node.op)) continue;
      const ValueId before = ValueId::node(order[i - 1]);
      const bool reads_it = std::ranges::count(node.operands, Operand(before)) > 0;
      if (reads_it && std::holds_alternative<Transpose>(gradient.node(before).op)) ++pairs;
    }
    EXPECT_EQ(pairs, wrt.size());
  }
}

TEST(LoweringOrder, CreationOps_DoNotPartAProducerFromItsConsumer) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  const Var t = transpose(x);
  const Var ones = fill(builder, Literal::one(DType::f32), {2, 2});
  builder.output("y", matmul(t, ones).id());
  EXPECT_THAT(lowering_order(builder.finish()), ElementsAre(1, 0, 2));
}

TEST(LoweringOrder, OutputsAndRepeatedOperands_StayInProgramOrder) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  const Var a = exp(x);  // an output
  const Var b = tanh(x);
  const Var c = b * b;
  builder.output("a", a.id());
  builder.output("y", (c + a).id());
  EXPECT_THAT(lowering_order(builder.finish()), ElementsAre(0, 1, 2, 3));
}

TEST(LoweringOrder, MillionChainedNodes_NeedNoRecursion) {
  Builder builder;
  Var x(builder, builder.input("x", {DType::f32, {}}));
  Var y = x;
  for (int i = 0; i < 1000000; ++i) y = -y;
  builder.output("y", y.id());
  const Program program = builder.finish();
  HandlerRegistry<int> registry;
  registry.add<Negate>([](const HandlerContext&, std::span<const HandlerOperand<int>> operands) {
    return operands[0].value() + 1;
  });
  const auto lowered = lower(Artifact::untouched("forward", program), registry,
                             [](const InputContext&) { return 0; });
  EXPECT_EQ(lowered.output(0), 1000000);
}

TEST(Walk, Value_DiesAfterItsLastUse) {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  builder.output("y", exp(exp(exp(x))).id());
  std::vector<std::weak_ptr<int>> made;
  std::vector<int> alive;
  const auto make = [&] {
    auto value = std::make_shared<int>(0);
    alive.push_back(0);
    for (const auto& old : made) alive.back() += old.expired() ? 0 : 1;
    made.push_back(value);
    return value;
  };
  HandlerRegistry<std::shared_ptr<int>> registry;
  registry.add<Exponential>(
      [&](const HandlerContext&, std::span<const HandlerOperand<std::shared_ptr<int>>>) {
        return make();
      });
  lower(Artifact::untouched("forward", builder.finish()), registry,
        [&](const InputContext&) { return make(); });
  EXPECT_THAT(alive, ElementsAre(0, 1, 1, 1));
}

// transpose %0 and dot_general %1, then exp %2.
Program transposed_product() {
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  builder.output("y", exp(matmul(transpose(x), x)).id());
  return builder.finish();
}

Machine& with_all(Machine& machine) {
  return machine.with({OpKind::Transpose, OpKind::DotGeneral, OpKind::Exponential, OpKind::Add});
}

TEST(Fusion, Window_ClaimsSeveralNodesOnce) {
  Machine machine;
  std::vector<std::vector<std::int64_t>> offers;
  with_all(machine).registry.set_fusion(
      {2,
       [&](const Artifact& artifact,
           std::span<const std::int64_t> nodes) -> std::optional<FusionClaim<Text>> {
         offers.emplace_back(nodes.begin(), nodes.end());
         const auto kind = [&](std::size_t i) {
           return kind_of(artifact.program.node(ValueId::node(nodes[i])).op);
         };
         if (nodes.size() < 2 || kind(0) != OpKind::Transpose || kind(1) != OpKind::DotGeneral) {
           return std::nullopt;
         }
         return FusionClaim<Text>{
             {nodes[0], nodes[1]}, [](const auto& lookup) {
               return std::make_unique<std::string>("gram(" + *lookup(ValueId::input(0)) + ")");
             }};
       }});
  const auto lowered = machine.lower_it(transposed_product());
  EXPECT_EQ(*lowered.output(0), "Exponential(gram(x))");
  EXPECT_THAT(machine.log, ElementsAre("forward:%2 stablehlo.exponential"));
  EXPECT_THAT(offers, ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(Fusion, Declining_ChangesNothing) {
  Machine plain, declining;
  with_all(plain);
  with_all(declining).registry.set_fusion({3, [](const Artifact&, std::span<const std::int64_t>) {
                                             return std::optional<FusionClaim<Text>>();
                                           }});
  EXPECT_EQ(*plain.lower_it(transposed_product()).output(0),
            *declining.lower_it(transposed_product()).output(0));
  EXPECT_EQ(plain.log, declining.log);
}

struct BadClaim {
  std::string name;
  std::vector<std::int64_t> nodes;
  std::string text;
};

TEST(Fusion, BadClaims_AreRefused) {
  // %0 add, %1 exp of it, %2 exp of an input, %3 the sum of both, %0 is an output too.
  Builder builder;
  Var x(builder, builder.input("x", kMatrix));
  const Var a = x + x;
  const Var b = exp(a);
  const Var c = exp(x);
  builder.output("a", a.id());
  builder.output("y", matmul(b, b + c).id());
  const Program program = builder.finish();
  ASSERT_THAT(lowering_order(program), ElementsAre(0, 1, 2, 3, 4));
  const BadClaim claims[] = {
      {"empty", {}, "claims no node"},
      {"repeated", {0, 0}, "twice"},
      {"not offered", {0, 4}, "not offered"},
      {"due node missing", {2}, "leaves out the node that is due"},
      {"two values escape", {0, 1}, "found 2 of its values"},
      {"an operand is not ready", {0, 3}, "neither ready nor inside"},
  };
  for (const BadClaim& bad : claims) {
    SCOPED_TRACE(bad.name);
    Machine machine;
    with_all(machine).registry.set_fusion(
        {4, [&](const Artifact&, std::span<const std::int64_t>) {
           return std::optional(FusionClaim<Text>{
               bad.nodes, [](const auto&) { return std::make_unique<std::string>("fused"); }});
         }});
    const Error error = error_of([&] { machine.lower_it(program); });
    EXPECT_EQ(error.category(), Category::handler_contract_violation);
    EXPECT_EQ(error.node(), "forward:%0 stablehlo.add");
    EXPECT_THAT(error.what(), HasSubstr(bad.text));
    EXPECT_TRUE(machine.log.empty());
  }
}

TEST(Fusion, ThrowingHookOrEmitter_IsCategorised) {
  Machine machine;
  with_all(machine).registry.set_fusion(
      {1, [](const Artifact&, std::span<const std::int64_t> nodes) {
         return std::optional(FusionClaim<Text>{
             {nodes[0]},
             [](const auto& lookup) { return Text(new std::string(*lookup(ValueId::node(2)))); }});
       }});
  const Error error = error_of([&] { machine.lower_it(transposed_product()); });
  EXPECT_EQ(error.category(), Category::handler_contract_violation);
  EXPECT_THAT(error.what(), HasSubstr("%2 is not ready"));
}

}  // namespace
}  // namespace mulgrad
