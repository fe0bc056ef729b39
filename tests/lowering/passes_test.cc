#include "lowering/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "autodiff/tape.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

TEST(Passes, Names_AreUniqueAndFindTheirPass) {
  const Target target = Target::matmul_only();
  std::set<std::string> names;
  for (const NamedPass& named : all_passes(target)) {
    SCOPED_TRACE(named.pass.name);
    EXPECT_TRUE(names.insert(named.pass.name).second);
    EXPECT_FALSE(named.description.empty());
    EXPECT_EQ(named.description.find('\n'), std::string::npos);
    const std::optional<Pass> found = pass_by_name(named.pass.name, target);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->name, named.pass.name);
    EXPECT_TRUE(found->run);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"expand_mean", "expand_mean_derivative"}));
}

TEST(Passes, DefaultPipelines_HoldNoOther) {
  for (const Target& target : built_in_targets()) {
    for (const Slot slot : {Slot::forward, Slot::derivative, Slot::update}) {
      for (const Pass& pass : default_pipeline(target, slot)) {
        EXPECT_TRUE(pass_by_name(pass.name, target).has_value()) << pass.name;
      }
    }
  }
}

TEST(Passes, UnknownName_IsNotFound) {
  EXPECT_FALSE(pass_by_name("live_code", Target::cpu()).has_value());
  EXPECT_FALSE(pass_by_name("", Target::cpu()).has_value());
}

TEST(Passes, Target_IsTheOneGiven) {
  Tape tape;
  tape.output("y", sum(tape.input("x", {DType::f32, {3}})));
  const Program source = tape.finish();
  EXPECT_TRUE(pass_by_name("legalize_to_matmul", Target::matmul_only())->run(source).changed);
  EXPECT_FALSE(pass_by_name("legalize_to_matmul", Target::cpu())->run(source).changed);
}

TEST(Passes, ExpandMean_FailsClosed) {
  Tape tape;
  tape.output("y", mean(tape.input("x", {DType::f32, {3, 5}}), {1}));
  EXPECT_THROW(pass_by_name("expand_mean", Target::cpu())->run(tape.finish()), Error);
}

TEST(Targets, BuiltIn_AreNamed) {
  std::vector<std::string> names;
  for (const Target& target : built_in_targets()) names.push_back(target.name());
  EXPECT_THAT(names, ::testing::ElementsAre("matmul_only", "matmul_move", "matmul_batched", "cpu"));
}

}  // namespace
}  // namespace mulgrad
