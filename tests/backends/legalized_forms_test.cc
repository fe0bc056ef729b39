// What is legalized for a target without reductions is a reduction again in the forms of the CPU.
#include <string>
#include <vector>

#include "backends/cpu/forms.h"
#include "core/expr.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/pipeline.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

TEST(LegalizedForms, Maxima_AreOneReductionAgain) {
  struct Case {
    Shape shape;
    Axes axes;
  };
  const std::vector<Case> cases{{{7, 10}, {1}}, {{3, 2}, {1}}, {{2, 3, 33}, {2}}, {{1, 10}, {1}}};
  for (const Target& target : {Target::matmul_only(), Target::matmul_batched()}) {
    for (const Case& test : cases) {
      SCOPED_TRACE(target.name() + " " + test.shape.to_string());
      Builder b;
      const Var x(b, b.input("x", {DType::f32, test.shape}));
      b.output("y", reduce(Reduction::max, x, test.axes).id());
      const Program source = b.finish();
      const Program lowered =
          run_passes(source, Slot::forward, default_pipeline(target, Slot::forward)).program;
      const Program found = cpu::kernel_forms(lowered);
      std::vector<std::string> ops;
      for (const Node& node : found.nodes()) {
        if (!std::holds_alternative<Reshape>(node.op)) ops.emplace_back(info(node.op).name);
      }
      EXPECT_THAT(ops, ::testing::ElementsAre("Reduce")) << print(found);
      EXPECT_TRUE(testing::same_values(source, found, {.sign_of_zero = true}));
    }
  }
}

}  // namespace
}  // namespace mulgrad
