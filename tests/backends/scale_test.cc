// A million chained nodes through everything: what recursion or quadratic work would not survive.
#include "tests/support/scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/derive.h"
#include "autodiff/tape.h"
#include "backends/cpu/session.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

// loss = mean(y) for y of shape [2, 3] after `nodes` elementwise nodes.
Program chain(std::int64_t nodes) {
  Tape tape;
  Var y = tape.input("x", {DType::f64, {2, 3}});
  for (std::int64_t i = 0; i < nodes; ++i) y = i % 2 == 0 ? y * 2 : y * 0.5;
  tape.output("loss", mean(y));
  return tape.finish();
}

Program compiled(const Program& program, Slot slot) {
  const Target target = Target::matmul_only();
  PipelineResult result = run_passes(program, slot, default_pipeline(target, slot));
  EXPECT_EQ(only_target_ops(target).violation(result.program), std::nullopt);
  return std::move(result.program);
}

TEST(Scale, AMillionChainedNodes_BuildPrintParseDeriveRewritePlanAndRun) {
  constexpr std::int64_t kNodes = testing::kLongChain;
  const Program program = chain(kNodes);
  EXPECT_GE(std::ssize(program.nodes()), kNodes);
  EXPECT_EQ(parse(print(program)), program);

  const Derivative derived = derive(program, {"loss"}, {"x"});
  EXPECT_GE(std::ssize(derived.derivative.nodes()), kNodes);

  const Program forward = compiled(derived.forward, Slot::forward);
  const Program derivative = compiled(derived.derivative, Slot::derivative);

  CpuProgram run_forward(forward);
  const Tensor x = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_DOUBLE_EQ(run_forward.run(std::vector<Tensor>{x})[0].element(0).as_double(), 3.5);

  ASSERT_EQ(derivative.inputs().size(), 1u);  // the seed: a linear chain captures nothing
  CpuProgram run_derivative(derivative);
  const Tensor gradient = run_derivative.run(std::vector<Tensor>{Tensor::scalar(1.0)})[0];
  EXPECT_EQ(gradient.to_doubles(), std::vector<double>(6, 1.0 / 6));
}

TEST(Scale, DoublingSixtyFourTimes_DerivesInLinearSize) {
  Tape tape;
  Var y = tape.input("x", {DType::f64, {}});
  for (int i = 0; i < 64; ++i) y = y + y;
  tape.output("loss", y);
  const Derivative derived = derive(tape.finish(), {"loss"}, {"x"});
  EXPECT_LE(derived.derivative.nodes().size(), 200u);
  const Tensor gradient =
      CpuProgram(derived.derivative).run(std::vector<Tensor>{Tensor::scalar(1.0)})[0];
  EXPECT_EQ(gradient.element(0).as_double(), std::ldexp(1.0, 64));
}

}  // namespace
}  // namespace mulgrad
