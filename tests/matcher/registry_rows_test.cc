// Registry, walk and fusion, as a whole training step uses them.
//
// Where each row is tested. "Reg" is tests/lowering/registry_test.cc, "Walk" is
// tests/lowering/walk_test.cc; no prefix: this file.
//
//   second handler for an op, empty handler     Reg HandlerRegistry.SecondHandler_*, EmptyHandler_*
//   handler that returns nothing or throws      Walk Walk.HandlerErrors_*,
//                                               BrokenHandler_NamesArtifactAndNode
//   a window of 2 sees transpose + dot_general  Walk LoweringOrder.GradientProduct_*,
//                                               WindowOfTwo_FusesTheGradientProducts
//   refused claims: empty, repeated, not        Walk Fusion.BadClaims_AreRefused,
//     offered, due node missing, not one        BadClaimInAStep_NamesArtifactAndNode
//     escaping value, operand not ready
//   declining changes nothing                   Walk Fusion.Declining_*, DecliningHook_*
//   a node is emitted exactly once              EveryReachableNode_IsEmittedOnce
//   only reachable nodes are lowered            Walk Walk.UnreachableNodes_*, same test here
//   V may be move-only                          Walk (unique_ptr throughout), MoveOnlyValues_*
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>

#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "lowering/training_step.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using Text = std::unique_ptr<std::string>;  // move-only on purpose
using Operands = std::span<const HandlerOperand<Text>>;

Passes both_passes() { return {{expand_mean()}, {expand_mean_derivative()}, {}}; }

// mean(transpose(a) @ (b + b)).
TrainingSpec gram_spec() {
  TrainingSpec spec;
  spec.inputs = {{"a", {DType::f64, {3, 2}}}, {"b", {DType::f64, {3, 4}}}};
  spec.parameters = {"a", "b"};
  spec.loss = [](Tape&, const NamedVars& in) {
    return mean(matmul(transpose(in["a"]), in["b"] + in["b"]), {0, 1}, KeepDims::yes);
  };
  spec.update = [](const UpdateArguments& in) { return Update{in.parameter - in.gradient, {}}; };
  return spec;
}

// Writes every artifact as text; counts how often each node is emitted.
struct Writer {
  HandlerRegistry<Text> registry;
  std::map<std::string, std::map<std::int64_t, int>> emitted;  // by artifact and node

  explicit Writer(const std::optional<OpKind>& left_out = {}) {
    for (const OpKind kind : {OpKind::Fill, OpKind::DotGeneral, OpKind::Multiply, OpKind::Add,
                              OpKind::Subtract, OpKind::Transpose, OpKind::Reshape}) {
      if (kind == left_out) continue;
      registry.add(kind, [this](const HandlerContext& context, Operands operands) {
        ++emitted[context.artifact.name][context.index];
        std::string text = std::string(info(context.node().op).name) + "(";
        for (const auto& operand : operands) {
          text += operand.is_literal() ? operand.literal().to_string() : *operand.value();
          text += ";";
        }
        return std::make_unique<std::string>(text + ")");
      });
    }
  }
  CompiledTrainingStep<Text> compile(const TrainingSpec& spec = gram_spec()) {
    return compile_training_step(
        spec, {}, Target::of(registry), registry,
        [](const InputContext& context) -> Text {
          return std::make_unique<std::string>(context.input().name);
        },
        both_passes());
  }
};

OpKind kind_at(const Artifact& artifact, std::int64_t node) {
  return kind_of(artifact.program.node(ValueId::node(node)).op);
}

TEST(RegistryRows, MoveOnlyValues_PassThroughAWholeStep) {
  Writer writer;
  const auto compiled = writer.compile();
  ASSERT_EQ(compiled.lowered.size(), 4u);  // forward, derivative and an update per type
  EXPECT_THAT(*compiled.lowered[1].output(0), HasSubstr("Transpose(DotGeneral("));
  EXPECT_EQ(*compiled.lowered[2].output(0), "Subtract(parameter;gradient;)");
}

TEST(RegistryRows, WindowOfTwo_FusesTheGradientProducts) {
  Writer writer;
  std::map<std::string, int> fused;
  writer.registry.set_fusion(
      {2,
       [&](const Artifact& artifact,
           std::span<const std::int64_t> nodes) -> std::optional<FusionClaim<Text>> {
         EXPECT_LE(nodes.size(), 2u);
         if (nodes.size() < 2 || kind_at(artifact, nodes[0]) != OpKind::Transpose ||
             kind_at(artifact, nodes[1]) != OpKind::DotGeneral) {
           return std::nullopt;
         }
         const Node& product = artifact.program.node(ValueId::node(nodes[1]));
         if (std::ranges::count(product.operands, Operand(ValueId::node(nodes[0]))) == 0) {
           return std::nullopt;
         }
         ++fused[artifact.name];
         const auto name = artifact.name;
         return FusionClaim<Text>{{nodes[0], nodes[1]}, [name](const auto&) {
                                    return std::make_unique<std::string>("fused");
                                  }};
       }});
  writer.compile();
  EXPECT_EQ(fused["derivative"], 2) << "for a and for b";
  for (const auto& [node, times] : writer.emitted["derivative"]) EXPECT_EQ(times, 1) << node;
}

TEST(RegistryRows, DecliningHook_ChangesNothing) {
  Writer plain, declining;
  int offers = 0;
  declining.registry.set_fusion({3, [&](const Artifact&, std::span<const std::int64_t>) {
                                   ++offers;
                                   return std::optional<FusionClaim<Text>>();
                                 }});
  const auto want = plain.compile();
  const auto got = declining.compile();
  EXPECT_GT(offers, 0);
  EXPECT_EQ(plain.emitted, declining.emitted);
  for (std::size_t i = 0; i < want.lowered.size(); ++i) {
    for (std::size_t k = 0; k < want.lowered[i].outputs.size(); ++k) {
      EXPECT_EQ(*want.lowered[i].output(k), *got.lowered[i].output(k));
    }
  }
}

// A handler of a step that fails: by artifact, node and original text.
TEST(RegistryRows, BrokenHandler_NamesArtifactAndNode) {
  const struct {
    HandlerRegistry<Text>::Handler handler;
    std::string text;
  } cases[] = {
      {[](const HandlerContext&, Operands) -> Text { throw std::runtime_error("no such unit"); },
       "no such unit"},
      {[](const HandlerContext&, Operands) { return Text(); }, "returned nothing"},
  };
  for (const auto& broken : cases) {
    Writer writer(OpKind::Subtract);  // the updates alone subtract
    writer.registry.add<Subtract>(broken.handler);
    const Error error = error_of([&] { writer.compile(); });
    EXPECT_EQ(error.category(), Category::handler_contract_violation);
    EXPECT_EQ(error.node(), "update.3x2xf64:%0 stablehlo.subtract");
    EXPECT_THAT(error.message(), HasSubstr(broken.text));
  }
}

TEST(RegistryRows, BadClaimInAStep_NamesArtifactAndNode) {
  Writer writer;
  writer.registry.set_fusion(
      {2,
       [](const Artifact& artifact,
          std::span<const std::int64_t> nodes) -> std::optional<FusionClaim<Text>> {
         if (artifact.name != "derivative") return std::nullopt;
         return FusionClaim<Text>{{nodes[0], nodes[0]},
                                  [](const auto&) { return std::make_unique<std::string>("x"); }};
       }});
  const Error error = error_of([&] { writer.compile(); });
  EXPECT_EQ(error.category(), Category::handler_contract_violation);
  EXPECT_THAT(error.node(), HasSubstr("derivative:%"));
  EXPECT_THAT(error.message(), HasSubstr("twice"));
  EXPECT_TRUE(writer.emitted["derivative"].empty());
}

// Random programs under a hook that claims whatever pair it may: every reachable node is emitted or
// fused exactly once and reads ready values only, an unreachable one never.
TEST(RegistryRows, EveryReachableNode_IsEmittedOnce) {
  std::mt19937 random(7);
  int fused = 0;
  for (int round = 0; round < 200; ++round) {
    Builder builder;
    std::vector<Var> values{{builder, builder.input("x", {DType::f64, {2, 2}})},
                            {builder, builder.input("y", {DType::f64, {2, 2}})}};
    const auto any = [&] { return values[random() % values.size()]; };
    const int count = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      switch (random() % 3) {
        case 0:
          values.push_back(any() + any());
          break;
        case 1:
          values.push_back(transpose(any()));
          break;
        default:
          values.push_back(matmul(any(), any()));
      }
    }
    builder.output("z", values.back().id());
    builder.output("w", any().id());
    const Artifact artifact = Artifact::untouched("forward", builder.finish());
    const Program& program = artifact.program;
    std::vector<int> emitted(program.nodes().size());
    HandlerRegistry<Text> registry;
    for (const OpKind kind : {OpKind::Add, OpKind::Transpose, OpKind::DotGeneral}) {
      registry.add(kind, [&](const HandlerContext& context, Operands operands) {
        for (const auto& operand : operands) EXPECT_NE(operand.value(), nullptr);
        ++emitted[static_cast<std::size_t>(context.index)];
        return std::make_unique<std::string>("v");
      });
    }
    // The second of the pair reads the first, which nothing else reads.
    registry.set_fusion(
        {2,
         [&](const Artifact&,
             std::span<const std::int64_t> nodes) -> std::optional<FusionClaim<Text>> {
           if (nodes.size() < 2) return std::nullopt;
           const Uses uses(program);
           const ValueId first = ValueId::node(nodes[0]);
           const Node& second = program.node(ValueId::node(nodes[1]));
           if (uses.count(first) != 1 || std::ranges::count(second.operands, Operand(first)) != 1) {
             return std::nullopt;
           }
           const std::vector<std::int64_t> pair(nodes.begin(), nodes.end());
           return FusionClaim<Text>{
               pair, [&, pair](const auto& lookup) {
                 for (const std::int64_t node : pair) {
                   ++emitted[static_cast<std::size_t>(node)];
                   for (const Operand& operand : program.node(ValueId::node(node)).operands) {
                     if (operand.value() == ValueId::node(pair[0])) continue;
                     EXPECT_NE(lookup(operand.value()), nullptr);
                   }
                 }
                 ++fused;
                 return std::make_unique<std::string>("f");
               }};
         }});
    lower(artifact, registry,
          [](const InputContext&) -> Text { return std::make_unique<std::string>("input"); });
    const std::vector<bool> reachable = reachable_nodes(program);
    for (std::size_t i = 0; i < emitted.size(); ++i) {
      EXPECT_EQ(emitted[i], reachable[i] ? 1 : 0) << "round " << round << ", node " << i;
    }
  }
  EXPECT_GT(fused, 50);
}

}  // namespace
}  // namespace mulgrad
