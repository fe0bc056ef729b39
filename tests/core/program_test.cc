#include "core/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/expr.h"
#include "core/interpreter.h"
#include "tests/support/errors.h"
#include "tests/support/scale.h"

namespace mulgrad {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::kLongChain;

const Type kMatrix{DType::f32, {2, 3}};

// x, y -> op(x, y), with the operands in either order.
Program binary(Op op, bool swapped = false) {
  Builder b;
  const ValueId x = b.input("x", kMatrix);
  const ValueId y = b.input("y", kMatrix);
  b.output("z", swapped ? b.add(std::move(op), {y, x}) : b.add(std::move(op), {x, y}));
  return b.finish();
}

Program scaled_sum(Axes axes, double factor) {
  Builder b;
  const Var x(b, b.input("x", kMatrix));
  b.output("y", (sum(x, std::move(axes)) * factor).id());
  return b.finish();
}

void expect_different(const Program& a, const Program& b) {
  EXPECT_FALSE(a == b);
  EXPECT_NE(a.hash(), b.hash());
}

TEST(Program, EqualPrograms_AreEqualAndHashAlike) {
  EXPECT_EQ(binary(Subtract{}), binary(Subtract{}));
  EXPECT_EQ(binary(Subtract{}).hash(), binary(Subtract{}).hash());
}

TEST(Program, Equality_SeesOpsAttributesOperandsLiteralsAndNames) {
  expect_different(binary(Subtract{}), binary(Add{}));
  expect_different(binary(Subtract{}), binary(Subtract{}, true));
  expect_different(binary(Compare{Comparison::LT}), binary(Compare{Comparison::LE}));
  expect_different(scaled_sum({0}, 2), scaled_sum({1}, 2));
  expect_different(scaled_sum({0}, 2), scaled_sum({0}, 3));
  expect_different(scaled_sum({0}, 0.0), scaled_sum({0}, -0.0));
  const auto named = [](std::string input, std::string output, OutputRole role) {
    Builder b;
    b.output(std::move(output), b.input(std::move(input), kMatrix), role);
    return b.finish();
  };
  const Program base = named("x", "y", OutputRole::output);
  expect_different(base, named("a", "y", OutputRole::output));
  expect_different(base, named("x", "b", OutputRole::output));
  expect_different(base, named("x", "y", OutputRole::capture));
}

TEST(Program, Hash_IsStableAcrossProcesses) {
  EXPECT_EQ(Program().hash(), 2619250595587859405u);
  EXPECT_EQ(scaled_sum({0, 1}, 0.5).hash(), 11726959636244605124u);
}

TEST(Program, Origins_AreNoPartOfEqualityAndHash) {
  const Program program = scaled_sum({0}, 2);
  const Program fresh = program.with_fresh_origins();
  EXPECT_EQ(fresh.origins()[1], 1);
  EXPECT_EQ(program.origins()[1], kNoOrigin);
  EXPECT_EQ(program, fresh);
  EXPECT_EQ(program.hash(), fresh.hash());
}

TEST(Program, Uses_CountOperandsOutputsAndCaptures) {
  Builder b;
  const Var x(b, b.input("x", kMatrix));
  const Var square = x * x;
  b.output("y", square.id());
  b.output("c0", square.id(), OutputRole::capture);
  const Program program = b.finish();
  const Uses uses(program);
  EXPECT_EQ(uses.count(ValueId::input(0)), 2);
  EXPECT_EQ(uses.count(ValueId::node(0)), 2);
}

TEST(Program, ReachableNodes_LeavesOutWhatNoOutputNeeds) {
  Builder b;
  const Var x(b, b.input("x", kMatrix));
  const Var used = exp(x);
  exp(used);
  b.output("y", (-used).id());
  EXPECT_EQ(reachable_nodes(b.finish()), (std::vector<bool>{true, false, true}));
}

TEST(Program, Names_AreCheckedByRole) {
  Builder b;
  const ValueId x = b.input("x", kMatrix);
  b.input("x", kMatrix, InputRole::capture);  // another role: fine
  EXPECT_EQ(error_of([&] { b.input("x", kMatrix); }).category(), Category::invalid_name);
  EXPECT_EQ(error_of([&] { b.input("", kMatrix); }).category(), Category::invalid_name);
  EXPECT_EQ(error_of([&] { b.input("1x", kMatrix); }).category(), Category::invalid_name);
  EXPECT_EQ(error_of([&] { b.input("a b", kMatrix); }).category(), Category::invalid_name);
  b.output("y", x);
  EXPECT_EQ(error_of([&] { b.output("y", x); }).category(), Category::invalid_name);
  for (int i = 0; i < 100; ++i) b.input("x" + std::to_string(i), kMatrix);
  EXPECT_EQ(error_of([&] { b.input("x57", kMatrix); }).category(), Category::invalid_name);
}

TEST(Program, ValueOfAnotherProgram_IsMissingDependency) {
  Builder b;
  b.input("x", kMatrix);
  const Error error = error_of([&] { b.add(Negate{}, {ValueId::node(3)}); });
  EXPECT_EQ(error.category(), Category::missing_dependency);
  EXPECT_EQ(error.node(), "%0 stablehlo.negate");
  EXPECT_EQ(error_of([&] { b.output("y", ValueId::input(1)); }).category(),
            Category::missing_dependency);
}

TEST(Program, ValueThatLeftWithFinish_IsMissingDependency) {
  Builder b;
  const Var x(b, b.input("x", kMatrix));
  const Var y = x + x;
  b.output("y", y.id());
  const Program program = b.finish();
  EXPECT_EQ(error_of([&] { y + y; }).category(), Category::missing_dependency);
  EXPECT_EQ(error_of([&] { x.shape(); }).category(), Category::missing_dependency);
  EXPECT_EQ(error_of([&] { b.describe(y.id()); }).category(), Category::missing_dependency);
  EXPECT_EQ(error_of([&] { program.type(ValueId::node(1)); }).category(),
            Category::missing_dependency);
  EXPECT_EQ(error_of([&] { program.describe(ValueId::input(1)); }).category(),
            Category::missing_dependency);
}

TEST(Program, MovedFrom_IsStillThere) {
  Builder b;
  b.output("y", b.input("x", kMatrix));
  Program program = b.finish();
  const Program moved = std::move(program);
  EXPECT_EQ(program, moved);  // NOLINT: this is what is tested
}

TEST(Builder, AfterFinish_StartsAnewUnderItsName) {
  Builder b("again");
  b.output("y", b.input("x", kMatrix));
  b.finish();
  b.output("y", b.input("x", {DType::f32, {2}}));
  const Program second = b.finish();
  EXPECT_EQ(second.name(), "again");
  EXPECT_EQ(second.inputs().size(), 1u);
  verify(second);
}

TEST(Builder, NumbersAboveI64_AreExactOrRefused) {
  Builder b;
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  const Var x(b, b.input("x", {DType::u64, {}}));
  const Var y(b, b.input("y", {DType::i64, {}}));
  const Var z(b, b.input("z", {DType::f32, {}}));
  x + kLargest;
  EXPECT_EQ(b.nodes().back().operands[1], Operand(Literal::largest_finite(DType::u64)));
  z + kLargest;
  EXPECT_EQ(b.nodes().back().operands[1], Operand(Literal::from_double(DType::f32, 0x1p64)));
  EXPECT_EQ(error_of([&] { y + kLargest; }).category(), Category::invalid_literal);
}

TEST(Program, RefusedNode_IsNotAppended) {
  Builder b;
  const ValueId x = b.input("x", kMatrix);
  error_of([&] { b.add(Not{}, {x}); });
  EXPECT_TRUE(b.nodes().empty());
  EXPECT_EQ(b.add(Negate{}, {x}), ValueId::node(0));
}

TEST(Builder, Copy_InfersAgainWhereOperandTypesDiffer) {
  Builder source;
  const ValueId lhs = source.input("x", kMatrix);
  const ValueId rhs = source.input("w", {DType::f32, {3, 4}});
  source.add(DotGeneral{{}, {}, {1}, {0}, DType::f32}, {lhs, rhs});
  const Program program = source.finish();
  Builder b;
  const ValueId x = b.input("x", kMatrix);
  const ValueId w = b.input("w", {DType::f32, {3, 4}});
  const ValueId wide = b.input("wide", {DType::f32, {3, 9}});
  const Operand same[] = {x, w};
  const Operand wider[] = {x, wide};
  const Operand wrong[] = {x, x};
  const ValueId copies[] = {b.copy(program, 0, same), b.copy(program, 0, wider)};
  EXPECT_EQ(error_of([&] { b.copy(program, 0, wrong); }).category(),
            Category::matmul_shape_mismatch);
  EXPECT_EQ(b.type(copies[0]), (Type{DType::f32, {2, 4}}));
  EXPECT_EQ(b.type(copies[1]), (Type{DType::f32, {2, 9}}));
  verify(b.finish());
}

TEST(Builder, Keep_DropsRenamesAndReorders) {
  Builder b;
  const ValueId unread = b.input("unread", kMatrix);
  const ValueId x = b.input("x", kMatrix, InputRole::capture);
  const ValueId y = b.input("y", kMatrix, InputRole::seed);
  b.set_origin(7);
  b.add(Negate{}, {unread});
  b.set_origin(8);
  const ValueId sum = b.add(Add{}, {x, y});
  b.set_origin(9);
  b.add(Abs{}, {sum});
  const ValueId product = b.add(Multiply{}, {sum, y});
  b.output("z", product);
  b.output("same", x);
  b.keep(std::vector<Builder::KeptInput>{{y, "y"}, {x, "c0"}}, {false, true, false, true});
  EXPECT_EQ(error_of([&] { b.input("c0", kMatrix, InputRole::capture); }).category(),
            Category::invalid_name);
  const Program kept = b.finish();
  verify(kept);

  Builder expected;
  const ValueId seed = expected.input("y", kMatrix, InputRole::seed);
  const ValueId capture = expected.input("c0", kMatrix, InputRole::capture);
  const ValueId total = expected.add(Add{}, {capture, seed});
  expected.output("z", expected.add(Multiply{}, {total, seed}));
  expected.output("same", capture);
  EXPECT_EQ(kept, expected.finish());
  EXPECT_EQ(std::vector<Origin>(kept.origins().begin(), kept.origins().end()),
            (std::vector<Origin>{8, 9}));
}

TEST(Builder, WithOutputs_SharesNodesAndChecksNames) {
  const Program program = scaled_sum({0}, 2);
  const Output added[] = {{"c0", ValueId::node(0), OutputRole::capture}};
  const Program more = Builder::with_outputs(program, added);
  EXPECT_EQ(more.nodes().data(), program.nodes().data());
  ASSERT_EQ(more.outputs().size(), 2u);
  EXPECT_EQ(more.outputs()[1], added[0]);
  const auto refused = [&](Output output) {
    return error_of([&] { Builder::with_outputs(program, std::span(&output, 1)); }).category();
  };
  EXPECT_EQ(refused({"y", ValueId::node(0)}), Category::invalid_name);
  EXPECT_EQ(refused({"z", ValueId::node(2)}), Category::missing_dependency);
}

TEST(Shape, CopiesThatChange_LeaveTheOthers) {
  const Shape shape{2, 3};
  Shape changed = shape;
  changed[0] = 5;
  Shape longer = shape;
  longer.push_back(4);
  EXPECT_EQ(shape, (Shape{2, 3}));
  EXPECT_EQ(changed, (Shape{5, 3}));
  EXPECT_EQ(longer, (Shape{2, 3, 4}));
}

TEST(Builder, Canonicalises_AxesAndSplats) {
  Builder b;
  const ValueId x = b.input("x", {DType::f32, {2, 3, 4}});
  b.add(Reduce{Reduction::sum, {-1, 0}}, {x});
  b.add(Mean{{2, -3}, false}, {x});
  const auto constant = [&](Tensor value) {
    b.add(Constant{std::make_shared<const Tensor>(std::move(value))}, {});
    return b.nodes().back().op;
  };
  EXPECT_EQ(b.nodes()[0].op, Op(Reduce{Reduction::sum, {0, 2}}));
  EXPECT_EQ(b.nodes()[1].op, Op(Mean{{0, 2}, false}));
  EXPECT_EQ(constant(Tensor::of<float>({3}, {7, 7, 7})),
            Op(Fill{Literal::from_double(DType::f32, 7), {3}}));
  EXPECT_EQ(constant(Tensor::of<float>({1}, {7})),
            Op(Fill{Literal::from_double(DType::f32, 7), {1}}));
  EXPECT_EQ(constant(Tensor(DType::f32, {0, 2})), Op(Fill{Literal::zero(DType::f32), {0, 2}}));
  EXPECT_EQ(kind_of(constant(Tensor::of<float>({2}, {0, -0.0f}))), OpKind::Constant);
}

Program symbolic() {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {Dim::symbol("B"), 3}}));
  b.output("y", reshape(x * 2, {Dim::symbol("B") * 3}).id());
  return b.finish();
}

TEST(Bind, GivesTheStaticProgram) {
  const Program bound = bind(symbolic(), {{"B", 4}});
  EXPECT_EQ(bound.inputs()[0].type, (Type{DType::f32, {4, 3}}));
  EXPECT_EQ(bound.nodes()[1].type, (Type{DType::f32, {12}}));
  EXPECT_EQ(symbols(symbolic()), std::vector<std::string>{"B"});
  EXPECT_TRUE(symbols(bound).empty());
  verify(bound);
}

TEST(Bind, MissingUnknownOrNegativeSymbol_IsAnError) {
  const Error missing = error_of([] { bind(symbolic(), {}); });
  EXPECT_EQ(missing.category(), Category::invalid_argument);
  EXPECT_THAT(missing.message(), HasSubstr("the symbol B has no binding"));
  const Error unknown = error_of([] { bind(symbolic(), {{"B", 1}, {"N", 2}}); });
  EXPECT_EQ(unknown.category(), Category::invalid_argument);
  EXPECT_THAT(unknown.message(), HasSubstr("N, which the program does not use"));
  const Error negative = error_of([] { bind(symbolic(), {{"B", -1}}); });
  EXPECT_EQ(negative.category(), Category::invalid_argument);
  EXPECT_THAT(negative.message(), HasSubstr("size -1 for B"));
}

TEST(Program, LongChain_BuildsInterpretsAndIsDestroyed) {
  Builder b;
  Var x(b, b.input("x", {DType::f32, {}}));
  for (std::int64_t i = 0; i < kLongChain; ++i) x = x + 1;
  b.output("y", x.id());
  const Program program = b.finish();
  ASSERT_EQ(std::ssize(program.nodes()), kLongChain);
  verify(program);
  EXPECT_EQ(Program(program).hash(), program.hash());
  const std::vector<Tensor> inputs = {Tensor::scalar(0.0f)};
  EXPECT_EQ(interpret(program, inputs)[0], Tensor::scalar(static_cast<float>(kLongChain)));
}

}  // namespace
}  // namespace mulgrad
