#include "lowering/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/custom.h"
#include "core/expr.h"
#include "lowering/target.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using testing::error_of;

using Text = std::unique_ptr<std::string>;  // move-only on purpose
using Handler = HandlerRegistry<Text>::Handler;

Handler say(std::string text) {
  return [text](const HandlerContext&, std::span<const HandlerOperand<Text>>) {
    return std::make_unique<std::string>(text);
  };
}

class Shout : public CustomDefinition {
 public:
  explicit Shout(std::string name) : CustomDefinition(std::move(name)) {}
  Type infer(const std::string&, std::span<const Type> operands) const override {
    return operands[0];
  }
  Tensor evaluate(const std::string&, std::span<const Tensor> operands) const override {
    return operands[0];
  }
};

TEST(HandlerRegistry, SecondHandler_NamesTheOp) {
  HandlerRegistry<Text> registry;
  registry.add<Add>(say("a"));
  const Error error = error_of([&] { registry.add<Add>(say("b")); });
  EXPECT_EQ(error.category(), Category::handler_contract_violation);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("second handler for Add"));
}

TEST(HandlerRegistry, EmptyHandler_NamesTheOp) {
  HandlerRegistry<Text> registry;
  const Error error = error_of([&] { registry.add<DotGeneral>(nullptr); });
  EXPECT_EQ(error.category(), Category::handler_contract_violation);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("empty handler for DotGeneral"));
  EXPECT_EQ(registry.find(DotGeneral{}), nullptr);
}

TEST(HandlerRegistry, Dispatch_IsExact) {
  HandlerRegistry<Text> registry;
  registry.add<Fill>(say("fill"));
  EXPECT_NE(registry.find(Fill{Literal::one(DType::f32), {}}), nullptr);
  EXPECT_EQ(registry.find(Iota{}), nullptr);
  EXPECT_THAT(registry.ops(), ::testing::ElementsAre(OpKind::Fill));
  EXPECT_TRUE(Target::of(registry).has(OpKind::Fill));
  EXPECT_FALSE(Target::of(registry).has(OpKind::Iota));
}

TEST(HandlerRegistry, CustomOps_AreFoundByName) {
  HandlerRegistry<Text> registry;
  registry.add_custom("shout", say("shout"));
  EXPECT_NE(registry.find(Custom{std::make_shared<Shout>("shout"), ""}), nullptr);
  EXPECT_EQ(registry.find(Custom{std::make_shared<Shout>("whisper"), ""}), nullptr);
  EXPECT_EQ(error_of([&] { registry.add_custom("shout", say("again")); }).category(),
            Category::handler_contract_violation);
  EXPECT_THAT(registry.ops(), ::testing::ElementsAre(OpKind::Custom));
  registry.add<Custom>(say("any other"));
  EXPECT_NE(registry.find(Custom{std::make_shared<Shout>("whisper"), ""}),
            registry.find(Custom{std::make_shared<Shout>("shout"), ""}));
}

TEST(HandlerRegistry, FusionHook_IsOneAndNotEmpty) {
  HandlerRegistry<Text> registry;
  EXPECT_EQ(error_of([&] {
              registry.set_fusion({2, nullptr});
            }).category(),
            Category::handler_contract_violation);
  const auto decline = [](const Artifact&, std::span<const std::int64_t>) {
    return std::optional<FusionClaim<Text>>();
  };
  EXPECT_EQ(error_of([&] {
              registry.set_fusion({0, decline});
            }).category(),
            Category::handler_contract_violation);
  registry.set_fusion({2, decline});
  EXPECT_EQ(error_of([&] {
              registry.set_fusion({2, decline});
            }).category(),
            Category::handler_contract_violation);
}

TEST(Artifact, Label_IsTheSourceNode) {
  Builder builder;
  Var x(builder, builder.input("x", {DType::f32, {2, 2}}));
  builder.output("y", transpose(x + 1.0, {1, 0}).id());
  const Artifact artifact = Artifact::untouched("forward", builder.finish());
  EXPECT_EQ(artifact.label(1), "forward:%1 stablehlo.transpose");
  EXPECT_EQ(artifact.input_label(0), "forward:%arg0 \"x\"");

  Builder rewritten;
  Var z(rewritten, rewritten.input("x", {DType::f32, {2, 2}}));
  rewritten.set_origin(1);
  rewritten.output("y", reshape(transpose(z), {4}).id());
  const Artifact lowered{"forward", artifact.source, rewritten.finish()};
  EXPECT_EQ(lowered.label(0), "forward:%1 stablehlo.transpose");
  EXPECT_EQ(lowered.label(1), "forward:%1 stablehlo.transpose (as stablehlo.reshape)");
}

}  // namespace
}  // namespace mulgrad
