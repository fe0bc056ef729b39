// What is legalized for a target without reductions is a reduction again in the forms of the CPU.
#include <array>
#include <string>
#include <vector>

#include "backends/cpu/forms.h"
#include "core/expr.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/pipeline.h"
#include "tests/support/op_cases.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

// All but reshapes.
std::vector<std::string> ops_of(const Program& program) {
  std::vector<std::string> ops;
  for (const Node& node : program.nodes()) {
    if (!std::holds_alternative<Reshape>(node.op)) ops.emplace_back(info(node.op).name);
  }
  return ops;
}

TEST(LegalizedForms, Maxima_AreOneReductionAgain) {
  struct Case {
    Shape shape;
    Axes axes;
  };
  const std::vector<Case> cases{{{7, 10}, {1}}, {{3, 2}, {1}}, {{2, 3, 33}, {2}}, {{1, 10}, {1}}};
  for (const Target& target :
       {Target::matmul_only(), Target::matmul_move(), Target::matmul_batched()}) {
    for (const Case& test : cases) {
      SCOPED_TRACE(target.name() + " " + test.shape.to_string());
      Builder b;
      const Var x(b, b.input("x", {DType::f32, test.shape}));
      b.output("y", reduce(Reduction::max, x, test.axes).id());
      const Program source = b.finish();
      const Program lowered =
          run_passes(source, Slot::forward, default_pipeline(target, Slot::forward)).program;
      const Program found = cpu::kernel_forms(lowered);
      EXPECT_THAT(ops_of(found), ::testing::ElementsAre("Reduce")) << print(found);
      EXPECT_TRUE(testing::same_values(source, found, {.sign_of_zero = true}));
    }
  }
}

// The masked block products of matmul_only and the slices of matmul_move cost nothing here.
TEST(LegalizedForms, BlockProducts_AreProductsByBatchAgain) {
  struct Case {
    Shape lhs;
    Shape rhs;
    DotGeneral op;
    std::size_t nodes;  // without reshapes
  };
  const auto f = DType::f32;
  const std::vector<Case> cases{
      {{5, 2, 3}, {5, 3, 4}, {{0}, {0}, {2}, {1}, f}, 1},
      {{2, 3, 4, 5}, {2, 3, 6, 5}, {{0, 1}, {0, 1}, {3}, {3}, f}, 1},
      {{2, 4, 3, 5}, {2, 6, 3, 5}, {{0, 2}, {0, 2}, {3}, {3}, f}, 1},
      {{64, 40, 2}, {64, 2, 40}, {{0}, {0}, {2}, {1}, f}, 1},  // the mask is too large to fold
      {{3, 2, 1}, {3, 1, 4}, {{0}, {0}, {2}, {1}, f}, 1},
      {{2, 3, 2, 5}, {3, 2, 5, 4}, {{0, 1}, {1, 0}, {3}, {2}, f}, 2},
  };
  for (const Case& test : cases) {
    for (const Target& target : {Target::matmul_only(), Target::matmul_move()}) {
      SCOPED_TRACE(target.name() + " " + test.lhs.to_string() + " by " + test.rhs.to_string());
      Builder b;
      const Var lhs(b, b.input("lhs", {f, test.lhs}));
      const Var rhs(b, b.input("rhs", {f, test.rhs}));
      b.output("y", dot_general(lhs, rhs, test.op).id());
      const Program source = b.finish();
      const Program lowered =
          run_passes(source, Slot::forward, default_pipeline(target, Slot::forward)).program;
      const Program found = cpu::kernel_forms(lowered);
      EXPECT_LE(ops_of(found).size(), test.nodes) << print(found);
      EXPECT_THAT(ops_of(found), ::testing::Contains("DotGeneral"));
      EXPECT_THAT(ops_of(found), ::testing::Not(::testing::Contains("Select")));
      EXPECT_THAT(ops_of(found), ::testing::Not(::testing::Contains("Slice")));
      EXPECT_TRUE(testing::same_values(source, found, {.sign_of_zero = true}));
    }
  }
}

// Another mask selects other products: then nothing is known.
TEST(LegalizedForms, OtherMask_StaysAMask) {
  Builder b;
  const Var lhs(b, b.input("lhs", {DType::f32, {4, 3}}));
  const Var rhs(b, b.input("rhs", {DType::f32, {3, 2}}));
  const Var mask = constant(b, Tensor::of<float>({4, 2}, {1, 0, 1, 0, 0, 1, 1, 0}));
  const Var wanted = select(compare(Comparison::EQ, mask, 1), matmul(lhs, rhs), 0);
  b.output("y", sum(wanted, {1}).id());
  const Program source = b.finish();
  const Program found = cpu::kernel_forms(source);
  EXPECT_THAT(ops_of(found), ::testing::Contains("Select"));
  EXPECT_TRUE(testing::same_values(source, found, {}));
}

// Halves that leave a middle, or of which one comes twice, are no reduction.
TEST(LegalizedForms, OtherSlices_StaySlices) {
  const std::vector<std::array<std::int64_t, 4>> cases{{0, 1, 2, 3}, {0, 1, 0, 1}, {1, 2, 2, 3}};
  for (const auto& [low, low_end, high, high_end] : cases) {
    Builder b;
    const Var x(b, b.input("x", {DType::f32, {3}}));
    const Var first = slice(x, {low}, {low_end});
    const Var second = slice(x, {high}, {high_end});
    b.output("y", maximum(first, second).id());
    const Program source = b.finish();
    const Program found = cpu::kernel_forms(source);
    EXPECT_THAT(ops_of(found), ::testing::Not(::testing::Contains("Reduce")));
    EXPECT_TRUE(testing::same_values(source, found, {}));
  }
}

// Every op, dtype and form of the case table, through the pipeline of each target and into the
// forms.
TEST(LegalizedForms, OpCases_KeepTheirValues) {
  int compared = 0;
  for (const testing::OpCase& op_case : testing::op_cases()) {
    const Program source = testing::program_of(op_case);
    for (const Target& target : built_in_targets()) {
      SCOPED_TRACE(op_case.name + " for " + target.name());
      const PipelineResult lowered =
          run_passes(source, Slot::forward, default_pipeline(target, Slot::forward));
      Numerics numerics{.sign_of_zero = true, .reassociates = true};
      for (const PassReport& pass : lowered.passes) {
        for (const Region& region : pass.regions) numerics = numerics | region.numerics;
      }
      // Which infinity comes of a zero hangs on its sign.
      const OpKind kind = kind_of(op_case.op);
      if (kind == OpKind::Divide || kind == OpKind::Power || kind == OpKind::Rsqrt) continue;
      ++compared;
      const Program found = cpu::kernel_forms(lowered.program);
      EXPECT_TRUE(testing::same_values(source, found, numerics)) << print(found);
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace mulgrad
