#include "lowering/cleaning.h"

#include <string>
#include <vector>

#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "lowering/legalize.h"
#include "tests/support/golden_cases.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

std::vector<Pass> all_passes() {
  return {fold_constants(),   common_subexpressions(),  dead_code(),
          transpose_pairs(),  remove_stop_gradient(),   extent_one_reduce_to_reshape(),
          elide_broadcasts(), materialize_broadcasts(), unit_products()};
}

TEST(Cleaning, GoldenCases) {
  for (const Pass& pass : all_passes()) {
    SCOPED_TRACE(pass.name);
    testing::check_golden_cases(pass);
  }
}

TEST(Cleaning, AllButTwo_AreBitExact) {
  for (const Pass& pass : all_passes()) {
    const bool drops_an_addition =
        pass.name == "extent_one_reduce_to_reshape" || pass.name == "unit_products";
    EXPECT_EQ(pass.numerics, (Numerics{.sign_of_zero = drops_an_addition})) << pass.name;
  }
}

// Symbols in every op that the passes look at: nothing throws, nothing changes its type.
TEST(Cleaning, SymbolicProgram_KeepsItsValues) {
  Tape tape;
  const Dim rows = Dim::symbol("B");
  const Var x = tape.input("x", {DType::f32, {rows, 1, 4}});
  const Var row = tape.input("row", {DType::f32, {4}});
  const Var wide = broadcast_in_dim(row, {rows, 1, 4}, {2});
  const Var flat = reshape(reshape(x + wide, {rows * 4}), {rows, 4});
  const Var ones = fill(tape.builder(), Literal::one(DType::f32), {rows, 4});
  tape.output("y", transpose(transpose(flat * (ones + ones))));
  tape.output("z", stop_gradient(sum(x, {1})) + iota(tape.builder(), DType::f32, {rows, 4}, 0));
  const Program source = tape.finish();
  for (const Pass& pass : all_passes()) {
    SCOPED_TRACE(pass.name);
    const PassResult result = pass.run(source);
    EXPECT_TRUE(testing::same_values(source, result.program, pass.numerics));
    EXPECT_FALSE(pass.run(result.program).changed);
  }
}

TEST(ElideBroadcasts, TargetOfPlainOperands_ReadsScalarsOnly) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {2, 3}});
  const Var row = broadcast_in_dim(tape.input("row", {DType::f32, {3}}), {2, 3}, {1});
  const Var scalar = broadcast_in_dim(tape.input("scalar", {DType::f32, {}}), {2, 3}, {});
  const Var single = broadcast_in_dim(tape.input("single", {DType::f32, {1, 1}}), {2, 3}, {1, 0});
  tape.output("y", (x + row) * scalar);
  tape.output("z", x * single);
  const Program source = tape.finish();
  const Program plain = elide_broadcasts(Target::matmul_only()).run(source).program;
  EXPECT_EQ(plain.nodes()[3].operands[1], source.nodes()[3].operands[1]);
  EXPECT_EQ(plain.nodes()[4].operands[1], Operand(ValueId::input(2)));
  EXPECT_EQ(plain.nodes()[5].op, Op(Reshape{{}}));
  EXPECT_EQ(plain.nodes()[6].operands[1], Operand(ValueId::node(5)));
  const Program any = elide_broadcasts(Target::cpu()).run(source).program;
  EXPECT_EQ(any, elide_broadcasts().run(source).program);
  EXPECT_FALSE(any == plain);
}

TEST(MaterializeAndElide, RoundTrip_IsTheSameProgramAfterDeadCode) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {2, 3}});
  const Var row = tape.input("row", {DType::f32, {1, 3}});
  const Var scalar = tape.input("scalar", {DType::f32, {}});
  tape.output("y", select(compare(Comparison::GT, x, row), (x - row) * scalar, 0));
  const Program source = tape.finish();
  const Program wide = materialize_broadcasts().run(source).program;
  EXPECT_EQ(wide.nodes().size(), source.nodes().size() + 3);
  EXPECT_EQ(dead_code().run(elide_broadcasts().run(wide).program).program, source);
}

// Folding sees what a device would compute: one rounding per op, NaN, and wrapping integers.
TEST(FoldConstants, Values_AreTheInterpreters) {
  Tape tape;
  Builder& b = tape.builder();
  const float inf = std::numeric_limits<float>::infinity();
  const Var x = constant(b, Tensor::of<float>({4}, {inf, -0.0F, 1e-45F, 3.4028235e38F}));
  const Var counts = constant(b, Tensor::of<std::int32_t>({2}, {2147483647, -7}));
  tape.output("difference", x - x);
  tape.output("third", x / 3);
  tape.output("total", sum(x));
  tape.output("wrapped", counts + 1);
  tape.output("largest", reduce(Reduction::max, x, {0}));
  const Program source = tape.finish();
  const PassResult folded = fold_constants().run(source);
  EXPECT_EQ(folded.regions.size(), 5u);
  EXPECT_TRUE(testing::same_values(source, folded.program, {}));
}

TEST(DeadCode, Captures_Count) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {2}}));
  const Var kept = exp(x);
  const Var dead = -kept;
  b.output("y", (x + x).id());
  b.output("c0", kept.id(), OutputRole::capture);
  const Program source = b.finish();
  const PassResult result = dead_code().run(source);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.program.nodes().size(), 2u);
  EXPECT_EQ(result.program.origins()[1], source.origins()[2]);
  EXPECT_EQ(dead.id(), ValueId::node(1));
}

}  // namespace
}  // namespace mulgrad
