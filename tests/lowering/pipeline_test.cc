#include "lowering/pipeline.h"

#include <array>
#include <string>
#include <vector>

#include "autodiff/derive.h"
#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "autodiff/optimizers.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/coverage.h"
#include "tests/support/golden.h"
#include "tests/support/near.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 5;

// The artifacts of a training step on 8x8 digits.
struct Step {
  Program forward;
  Program derivative;
  Program scalars;
  Program update;
};

Program trace_loss() {
  const Sequential model{Linear(64, 6), ReLU(), Linear(6, 10)};
  Tape tape("loss");
  const Var x = tape.input("x", {DType::f32, {kRows, 64}});
  const Var labels = tape.input("labels", {DType::i32, {kRows}});
  std::vector<Var> parameters;
  for (const Parameter& parameter : model.parameters()) {
    parameters.push_back(tape.input(parameter.name, parameter.type));
  }
  tape.output("loss", softmax_cross_entropy(model.forward(x, parameters), labels));
  return tape.finish();
}

Step digits_step() {
  const Program loss = trace_loss();
  std::vector<std::string> wrt;
  for (std::size_t i = 2; i < loss.inputs().size(); ++i) wrt.push_back(loss.inputs()[i].name);
  Derivative derivative = derive(loss, {"loss"}, wrt);

  const AdamW optimizer({.rate = 1e-3});
  Tape scalars("scalars");
  const Var count = scalars.input("count", {DType::i64, {}});
  for (const NamedVar& scalar : optimizer.scalars(count, DType::f32)) {
    scalars.output(scalar.name, scalar.value);
  }
  Tape update("update");
  const Type type{DType::f32, {64, 6}};
  const Var parameter = update.input("parameter", type);
  const Var gradient = update.input("gradient", type);
  std::vector<Var> state;
  for (const std::string& name : optimizer.state()) state.push_back(update.input(name, type));
  std::vector<Var> rates;
  for (const std::string& name : optimizer.scalar_names()) {
    rates.push_back(update.input(name, {DType::f32, {}}));
  }
  const Update result = optimizer.update(parameter, gradient, state, rates);
  update.output("parameter", result.parameter);
  for (std::size_t i = 0; i < state.size(); ++i) {
    update.output(optimizer.state()[i], result.state[i]);
  }
  return {derivative.forward, derivative.derivative, scalars.finish(), update.finish()};
}

CoverageArtifact lower(std::string name, const Program& source, Slot slot, const Target& target,
                       std::int64_t multiplicity = 1) {
  PipelineResult result = run_passes(source, slot, default_pipeline(target, slot));
  return {{std::move(name), source.with_fresh_origins(), result.program},
          std::move(result.passes),
          multiplicity};
}

std::vector<CoverageArtifact> lower_step(const Step& step, const Target& target) {
  return {lower("forward", step.forward, Slot::forward, target),
          lower("derivative", step.derivative, Slot::derivative, target),
          lower("scalars", step.scalars, Slot::update, target),
          lower("update", step.update, Slot::update, target, 4)};
}

TEST(DefaultPipeline, DigitsStep_IsCoveredByEveryTarget) {
  const Step step = digits_step();
  for (const Target& target : built_in_targets()) {
    SCOPED_TRACE(target.name());
    const std::vector<CoverageArtifact> artifacts = lower_step(step, target);
    const Coverage found = coverage(artifacts, target);
    EXPECT_TRUE(found.unsupported.empty()) << found.print();
    for (const CoverageArtifact& artifact : artifacts) {
      EXPECT_EQ(only_target_ops(target).violation(artifact.artifact.program), std::nullopt)
          << artifact.artifact.name;
    }
  }
}

TEST(DefaultPipeline, DigitsStep_KeepsItsValues) {
  const Step step = digits_step();
  for (const Target& target : built_in_targets()) {
    for (const CoverageArtifact& artifact : lower_step(step, target)) {
      SCOPED_TRACE(target.name() + " " + artifact.artifact.name);
      const Program& source = artifact.artifact.source;
      for (const std::uint64_t seed : {1, 2, 3}) {
        const std::vector<Tensor> inputs =
            testing::draw_inputs(source, testing::Draw::positive, seed);
        const std::vector<Tensor> want = interpret(source, inputs);
        const std::vector<Tensor> got = interpret(artifact.artifact.program, inputs);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
          EXPECT_TRUE(testing::near(got[i], want[i],
                                    {.of_largest = 2e-5, .zero_sign = testing::ZeroSign::free}));
        }
      }
    }
  }
}

TEST(DefaultPipeline, SecondRun_ChangesNothing) {
  const Step step = digits_step();
  for (const Target& target : built_in_targets()) {
    for (const auto& [program, slot] : {std::pair{&step.forward, Slot::forward},
                                        {&step.derivative, Slot::derivative},
                                        {&step.scalars, Slot::update},
                                        {&step.update, Slot::update}}) {
      const std::vector<Pass> passes = default_pipeline(target, slot);
      const Program once = run_passes(*program, slot, passes).program;
      const PipelineResult again = run_passes(once, slot, passes);
      for (const PassReport& report : again.passes) {
        EXPECT_FALSE(report.changed) << target.name() << " " << report.name << "\n"
                                     << print(once) << print(again.program);
      }
    }
  }
}

TEST(DefaultPipeline, MeanOutsideOfExpandMean_IsLegalized) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {3, 4, 5}});
  tape.output("rows", mean(x, {2}));
  tape.output("all", mean(reshape(x, {12, 5})));
  const Program source = tape.finish();
  const Target target = Target::matmul_only();
  const Program result =
      run_passes(source, Slot::forward, default_pipeline(target, Slot::forward)).program;
  EXPECT_EQ(only_target_ops(target).violation(result), std::nullopt);
  EXPECT_TRUE(
      testing::same_values(source, result, {.sign_of_zero = true, .reassociates = true, .ulp = 1}));
}

TEST(DefaultPipeline, MeanBesideOneOutsideOfExpandMean_IsExpanded) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {3, 5}});
  tape.output("all", mean(x));
  tape.output("rows", mean(x, {1}));
  const Target target = Target::matmul_only();
  const PipelineResult result =
      run_passes(tape.finish(), Slot::forward, default_pipeline(target, Slot::forward));
  EXPECT_EQ(only_target_ops(target).violation(result.program), std::nullopt);
  EXPECT_EQ(result.passes[0].name, "expand_mean");
  ASSERT_EQ(result.passes[0].regions.size(), 1u);
  EXPECT_EQ(result.passes[0].regions[0].origin, 0);
}

TEST(DefaultPipeline, ExpansionsStandBeforeTheLegalizer) {
  for (const auto& [slot, expansion] :
       {std::pair{Slot::forward, "expand_mean"}, {Slot::derivative, "expand_mean_derivative"}}) {
    std::vector<std::string> names;
    for (const Pass& pass : default_pipeline(Target::matmul_only(), slot)) {
      names.push_back(pass.name);
    }
    const auto expand = std::find(names.begin(), names.end(), expansion);
    const auto legalize = std::find(names.begin(), names.end(), "legalize_to_matmul");
    ASSERT_NE(expand, names.end());
    EXPECT_LT(expand, legalize);
  }
}

// Every pass walks without recursion and in linear time.
TEST(DefaultPipeline, ChainOf200000Nodes_IsRewritten) {
  Tape tape;
  Var x = tape.input("x", {DType::f32, {2, 2}});
  for (int i = 0; i < 50000; ++i) {
    x = transpose(transpose(stop_gradient(x) + 1.0));
  }
  tape.output("y", sum(x, {1}));
  const Program source = tape.finish();
  ASSERT_GE(source.nodes().size(), 200000u);
  const Target target = Target::matmul_only();
  const Program result =
      run_passes(source, Slot::forward, default_pipeline(target, Slot::forward)).program;
  EXPECT_EQ(only_target_ops(target).violation(result), std::nullopt);
  EXPECT_LT(result.nodes().size(), 50010u);
  const std::array inputs{Tensor::of<float>({2, 2}, {1, 2, 3, 4})};
  EXPECT_EQ(interpret(result, inputs)[0], Tensor::of<float>({2}, {100003, 100007}));
}

TEST(Coverage, DigitsStep_PrintsAsCommitted) {
  const Step step = digits_step();
  const Target target = Target::matmul_only();
  const Coverage found = coverage(lower_step(step, target), target);
  EXPECT_TRUE(testing::matches_golden(found.print(), "lowering/coverage_digits.txt"));
}

TEST(Coverage, Json_SaysWhatTheReportHolds) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {3, 5}});
  tape.output("m", mean(x));
  const Var n = tape.input("n", {DType::i32, {4}});
  tape.output("s", n + n);
  const Target target = Target::matmul_only();
  const std::vector<CoverageArtifact> artifacts{
      lower("forward", tape.finish(), Slot::forward, target, 2)};
  const Coverage found = coverage(artifacts, target);
  const auto json = nlohmann::json::parse(found.json());
  const auto parsed = [](const char* text) { return nlohmann::json::parse(text); };
  EXPECT_EQ(json["target"], "matmul_only");
  EXPECT_EQ(json["nodes"], parsed(R"({"native": 0, "rewritten": 2, "unsupported": 2})"));
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["op"], "stablehlo.add");
  EXPECT_EQ(json["rows"][0]["fate"], "unsupported");
  EXPECT_EQ(json["rows"][0]["reason"], found.rows[0].reason);
  EXPECT_EQ(json["rows"][1], parsed(R"({"artifact": "forward", "op": "mulgrad.mean",
      "fate": "rewritten", "nodes": 2, "rules": ["expand_mean"],
      "numerics": {"sign_of_zero": true, "finite_only": false, "reassociates": true,
                   "needs_exact_product": false, "ulp": 1},
      "work_factor": 1})"));
  ASSERT_EQ(json["emitted"].size(), found.emitted.size());
  EXPECT_EQ(json["emitted"][0], parsed(R"({"artifact": "forward", "op": "fill", "nodes": 4})"));
  EXPECT_EQ(json["work"]["before"]["flops"], found.before.flops);
  EXPECT_EQ(json["work"]["after"]["bytes"], found.after.bytes);
  EXPECT_EQ(json["work"]["after"]["constant_bytes"], found.after.constant_bytes);
  ASSERT_EQ(json["work"]["artifacts"].size(), 1u);
  EXPECT_EQ(json["work"]["artifacts"][0]["artifact"], "forward");
  EXPECT_EQ(json["work"]["artifacts"][0]["before"], json["work"]["before"]);
  ASSERT_EQ(json["unsupported"].size(), 1u);
  EXPECT_EQ(json["unsupported"][0]["node"], "forward:%1 stablehlo.add");
  EXPECT_EQ(json["unsupported"][0]["reason"], found.unsupported[0].reason);
}

// What a masked block product costs is told, and what it would cost beyond the limit.
TEST(Coverage, BlockProducts_TellTheirFactor) {
  const auto covered = [](std::int64_t batch) {
    Tape tape;
    const Var x = tape.input("x", {DType::f32, {batch, 2, 3}});
    tape.output("y", dot_general(x, x, {{0}, {0}, {2}, {2}, DType::f32}));
    const Target target = Target::matmul_only();
    const std::array artifacts{lower("forward", tape.finish(), Slot::forward, target)};
    return coverage(artifacts, target);
  };
  const Coverage found = covered(64);
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].work_factor, 64);
  EXPECT_THAT(found.print(), HasSubstr("{sign_of_zero, needs_exact_product}, 64 times the work\n"));
  EXPECT_EQ(nlohmann::json::parse(found.json())["rows"][0]["work_factor"], 64);
  EXPECT_GE(found.after.flops, 64 * found.before.flops);
  const Coverage refused = covered(65);
  ASSERT_EQ(refused.unsupported.size(), 1u);
  EXPECT_THAT(refused.print(), HasSubstr("65 times the work"));
}

TEST(Coverage, Work_IsToldPerArtifactAndInAll) {
  Tape forward;
  forward.output("y", exp(forward.input("x", {DType::f32, {5}})));
  Tape update;
  update.output("y", sum(update.input("x", {DType::f32, {3}})));
  const std::array artifacts{
      CoverageArtifact{Artifact::untouched("forward", forward.finish()), {}, 1},
      CoverageArtifact{Artifact::untouched("update", update.finish()), {}, 4}};
  const Coverage found = coverage(artifacts, Target::cpu());
  ASSERT_EQ(found.work.size(), 2u);
  EXPECT_EQ(found.work[0].before.flops, 5);
  EXPECT_EQ(found.work[1].artifact, "update");
  EXPECT_EQ(found.work[1].after.flops, 4 * 3);
  EXPECT_EQ(found.work[1].after.bytes, 4 * 4 * (3 + 1));
  EXPECT_EQ(found.after.flops, 5 + 4 * 3);
  EXPECT_EQ(found.before.bytes, 4 * (5 + 5) + 4 * 4 * (3 + 1));
}

TEST(Coverage, WithoutPasses_ListsEveryUnsupportedNode) {
  const Step step = digits_step();
  const Artifact forward = Artifact::untouched("forward", step.forward);
  const std::array artifacts{CoverageArtifact{forward, {}, 1}};
  const Target target = Target::matmul_only();
  const Coverage found = coverage(artifacts, target);
  std::vector<std::string> expected;
  for (std::int64_t i = 0; i < std::ssize(step.forward.nodes()); ++i) {
    if (target.refusal(step.forward, i)) expected.push_back(forward.label(i));
  }
  ASSERT_GT(expected.size(), 5u);
  std::vector<std::string> labels;
  for (const Refusal& refusal : found.unsupported) labels.push_back(refusal.label);
  EXPECT_EQ(labels, expected);
  EXPECT_EQ(found.count(NodeFate::unsupported), std::ssize(expected));
  EXPECT_EQ(found.count(NodeFate::rewritten), 0);
  EXPECT_EQ(found.before.flops, found.after.flops);
}

TEST(Coverage, HandlerMissing_IsUnsupported) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {2}});
  tape.output("y", exp(x) + x);
  const std::array artifacts{
      CoverageArtifact{Artifact::untouched("forward", tape.finish()), {}, 1}};
  const Coverage found = coverage(artifacts, Target::cpu(), [](const Op& op) {
    return !std::holds_alternative<Exponential>(op);
  });
  ASSERT_EQ(found.unsupported.size(), 1u);
  EXPECT_EQ(found.unsupported[0].label, "forward:%0 stablehlo.exponential");
  EXPECT_EQ(found.unsupported[0].reason, "no handler is registered");
  EXPECT_EQ(found.count(NodeFate::native), 1);
}

TEST(Coverage, Rules_AreNamedInOrderAndDeadNodesByTheirPass) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {3, 4}});
  const Var ones = fill(tape.builder(), Literal::one(DType::f32), {4});
  const Var scaled = x * broadcast_in_dim(ones, {3, 4}, {1});
  const Var scalar = tape.input("scalar", {DType::f32, {}});
  tape.output("y", sum(scaled + broadcast_in_dim(scalar, {3, 4}, {}), {0}));
  const Target target = Target::matmul_only();
  const std::vector<CoverageArtifact> artifacts{
      lower("forward", tape.finish(), Slot::forward, target)};
  const Coverage found = coverage(artifacts, target);
  std::vector<std::string> lines;
  for (const CoverageRow& row : found.rows) {
    std::string line = std::string(info(row.kind).name);
    for (const std::string& rule : row.rules) line += " " + rule;
    lines.push_back(line + " " + row.numerics.to_string());
  }
  EXPECT_THAT(lines, ::testing::ElementsAre(
                         "Fill dead_code {}", "Add elide_broadcasts {}", "Multiply {}",
                         "BroadcastInDim dead_code {}", "BroadcastInDim fold_constants {}",
                         "Reduce legalize_to_matmul {sign_of_zero, reassociates}"));
}

TEST(Coverage, Work_FollowsItsFormulas) {
  Tape tape;
  const Var a = tape.input("a", {DType::f32, {2, 3}});
  const Var b = tape.input("b", {DType::f32, {3, 5}});
  const Var c = fill(tape.builder(), Literal::one(DType::f32), {2, 5});
  exp(a);  // nothing reads it
  tape.output("y", mean(matmul(a, b) + c, {1}));
  const Work found = work(tape.finish());
  EXPECT_EQ(found.flops, 2 * 10 * 3 + 10 + (10 + 2));
  EXPECT_EQ(found.bytes, 4 * (10 + (6 + 15 + 10) + (10 + 10 + 10) + (10 + 2)));
  EXPECT_EQ(found.constant_bytes, 4 * 10);
}

TEST(Coverage, Multiplicity_CountsNodesAndWorkAndListsOnce) {
  Tape tape;
  tape.output("y", sum(tape.input("x", {DType::f32, {3}})));
  const std::array artifacts{CoverageArtifact{Artifact::untouched("update", tape.finish()), {}, 4}};
  const Coverage found = coverage(artifacts, Target::matmul_only());
  EXPECT_EQ(found.count(NodeFate::unsupported), 4);
  EXPECT_EQ(found.before.flops, 4 * 3);
  EXPECT_EQ(found.unsupported.size(), 1u);
}

TEST(Coverage, SymbolicArtifact_MustBeBound) {
  Tape tape;
  tape.output("y", exp(tape.input("x", {DType::f32, {Dim::symbol("B")}})));
  const std::array artifacts{
      CoverageArtifact{Artifact::untouched("forward", tape.finish()), {}, 1}};
  try {
    coverage(artifacts, Target::cpu());
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::unresolved_symbolic_shape);
  }
}

TEST(Coverage, LogicalInputAsOutput_IsUnsupported) {
  Tape tape;
  tape.output("y", tape.input("mask", {DType::i1, {3}}));
  const std::array artifacts{
      CoverageArtifact{Artifact::untouched("forward", tape.finish()), {}, 1}};
  const Coverage found = coverage(artifacts, Target::matmul_only());
  ASSERT_EQ(found.unsupported.size(), 1u);
  EXPECT_THAT(found.unsupported[0].label, HasSubstr("mask"));
}

}  // namespace
}  // namespace mulgrad
