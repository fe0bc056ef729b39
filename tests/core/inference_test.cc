#include "core/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/builder.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Type f32(Shape shape) { return {DType::f32, std::move(shape)}; }
Type i32(Shape shape) { return {DType::i32, std::move(shape)}; }
Type i1(Shape shape) { return {DType::i1, std::move(shape)}; }
const Dim B = Dim::symbol("B");
const Dim N = Dim::symbol("N");

using Operands = std::vector<std::variant<Type, Literal>>;

void build(const Op& op, const Operands& operands) {
  Builder b;
  std::vector<Operand> values;
  for (const auto& operand : operands) {
    if (const auto* literal = std::get_if<Literal>(&operand)) {
      values.emplace_back(*literal);
    } else {
      values.emplace_back(
          b.input("x" + std::to_string(b.inputs().size()), std::get<Type>(operand)));
    }
  }
  b.add(op, values);
}

// One way to break a constraint. The test's name for it is <constraint>_<what>.
struct Violation {
  std::string constraint;
  std::string what;
  Op op;
  Operands operands;
  Category category;
  std::string message;
};

DotGeneral dot(Axes lhs_batch, Axes rhs_batch, Axes lhs, Axes rhs, DType dtype = DType::f32) {
  return {std::move(lhs_batch), std::move(rhs_batch), std::move(lhs), std::move(rhs), dtype};
}

std::vector<Violation> violations() {
  using C = Category;
  const Literal one = Literal::one(DType::f32);
  const Literal integer = Literal::one(DType::i32);
  const Literal truth{DType::i1, 1};
  return {
      {"Elementwise E1", "OnlyLiterals", Add{}, {one, one}, C::invalid_literal, "at least one"},
      {"Elementwise E1",
       "LiteralPredicate",
       Select{},
       {truth, f32({2}), f32({2})},
       C::invalid_literal,
       "predicate"},
      {"Elementwise E1",
       "SelectOfTwoLiterals",
       Select{},
       {i1({2}), one, one},
       C::invalid_literal,
       "at least one"},
      {"Elementwise E2", "AddOfI1", Add{}, {i1({2}), i1({2})}, C::dtype_mismatch, "found dtype i1"},
      {"Elementwise E2",
       "ExponentialOfI32",
       Exponential{},
       {i32({2})},
       C::dtype_mismatch,
       "found dtype i32, expected a float"},
      {"Elementwise E2", "AbsOfU8", Abs{}, {Type{DType::u8, {2}}}, C::dtype_mismatch, "signed"},
      {"Elementwise E2", "NotOfF32", Not{}, {f32({2})}, C::dtype_mismatch, "i1 or an integer"},
      {"Elementwise E2",
       "PredicateF32",
       Select{},
       {f32({2}), f32({2}), f32({2})},
       C::dtype_mismatch,
       "predicate of dtype f32, expected i1"},
      {"Elementwise E3",
       "UnequalDtypes",
       Add{},
       {f32({2}), i32({2})},
       C::dtype_mismatch,
       "f32 and i32"},
      {"Elementwise E3",
       "UnequalBranches",
       Select{},
       {i1({2}), f32({2}), i32({2})},
       C::dtype_mismatch,
       "f32 and i32"},
      {"Elementwise E4",
       "LiteralOfAnotherDtype",
       Add{},
       {f32({2}), integer},
       C::dtype_mismatch,
       "f32 and i32"},
      {"Elementwise E4", "LiteralOfI1", And{}, {i1({2}), truth}, C::invalid_literal, "i1 literals"},
      {"Elementwise E5",
       "UnequalRanks",
       Add{},
       {f32({5, 2, 1}), f32({5, 2})},
       C::broadcast_shape_mismatch,
       "rank 3 vs 2"},
      {"Elementwise E5",
       "UnequalSizes",
       Add{},
       {f32({2, 3}), f32({2, 4})},
       C::broadcast_shape_mismatch,
       "sizes 3 and 4 at axis 1"},
      {"Elementwise E5",
       "TwoSymbols",
       Add{},
       {f32({B}), f32({N})},
       C::symbolic_shape_mismatch,
       "[B] and [N]"},
      {"Elementwise E5",
       "SymbolAndNumber",
       Clamp{},
       {one, f32({B}), f32({4})},
       C::symbolic_shape_mismatch,
       "[B] and 4"},

      {"Iota C1", "I1", Iota{DType::i1, {2}, 0}, {}, C::dtype_mismatch, "found dtype i1"},
      {"Iota C2",
       "DimensionTooLarge",
       Iota{DType::f32, {2}, 1},
       {},
       C::invalid_attribute,
       "dimension 1 for rank 1"},
      {"Iota C2",
       "DimensionNegative",
       Iota{DType::f32, {2}, -1},
       {},
       C::invalid_attribute,
       "dimension -1"},

      {"BroadcastInDim C1",
       "TooFewDims",
       BroadcastInDim{{2, 3}, {0}},
       {f32({2, 3})},
       C::broadcast_shape_mismatch,
       "found 1 dims for an operand of rank 2"},
      {"BroadcastInDim C2",
       "RepeatedDim",
       BroadcastInDim{{2, 2}, {0, 0}},
       {f32({2, 2})},
       C::broadcast_shape_mismatch,
       "[0, 0]"},
      {"BroadcastInDim C2",
       "DimOutOfRange",
       BroadcastInDim{{2, 3}, {2}},
       {f32({2})},
       C::broadcast_shape_mismatch,
       "[2]"},
      {"BroadcastInDim C3",
       "SizesDiffer",
       BroadcastInDim{{2, 4}, {0, 1}},
       {f32({2, 3})},
       C::broadcast_shape_mismatch,
       "size 3 for the result size 4"},
      {"BroadcastInDim C3",
       "SymbolAndNumber",
       BroadcastInDim{{4}, {0}},
       {f32({B})},
       C::symbolic_shape_mismatch,
       "[B]"},

      {"Reshape C1",
       "ElementsDiffer",
       Reshape{{5}},
       {f32({2, 3})},
       C::shape_mismatch,
       "found 6 elements in [2, 3], expected the 5"},
      {"Reshape C1",
       "SymbolAndNumber",
       Reshape{{12}},
       {f32({B, 3})},
       C::symbolic_shape_mismatch,
       "[3*B]"},

      {"Transpose C1", "TooShort", Transpose{{0}}, {f32({2, 3})}, C::invalid_permutation, "[0]"},
      {"Transpose C1",
       "Repeated",
       Transpose{{1, 1}},
       {f32({2, 3})},
       C::invalid_permutation,
       "[1, 1], expected a permutation of 2"},

      {"Slice C1",
       "StartTooShort",
       Slice{{0}, {2, 3}, {1, 1}},
       {f32({2, 3})},
       C::shape_mismatch,
       "found 1 entries for an operand of rank 2"},
      {"Slice C1",
       "LimitTooShort",
       Slice{{0, 0}, {2}, {1, 1}},
       {f32({2, 3})},
       C::shape_mismatch,
       "found 1 entries"},
      {"Slice C1",
       "StrideTooLong",
       Slice{{0}, {2}, {1, 1}},
       {f32({2})},
       C::shape_mismatch,
       "found 2 entries"},
      {"Slice C2",
       "StrideZero",
       Slice{{0}, {2}, {0}},
       {f32({2})},
       C::invalid_attribute,
       "stride 0 at axis 0"},
      {"Slice C3",
       "StartNegative",
       Slice{{-1}, {2}, {1}},
       {f32({2})},
       C::invalid_attribute,
       "-1:2"},
      {"Slice C3",
       "StartAboveLimit",
       Slice{{2}, {1}, {1}},
       {f32({2})},
       C::invalid_attribute,
       "2:1"},
      {"Slice C3",
       "LimitAboveSize",
       Slice{{0}, {3}, {1}},
       {f32({2})},
       C::invalid_attribute,
       "<= 2"},

      {"Concatenate C1", "NoOperand", Concatenate{0}, {}, C::arity_mismatch, "no operand"},
      {"Concatenate C2",
       "DimensionTooLarge",
       Concatenate{1},
       {f32({2})},
       C::invalid_attribute,
       "dimension 1 for rank 1"},
      {"Concatenate C3",
       "UnequalDtypes",
       Concatenate{0},
       {f32({2}), i32({2})},
       C::dtype_mismatch,
       "f32 and i32"},
      {"Concatenate C4",
       "UnequalRanks",
       Concatenate{0},
       {f32({2}), f32({2, 1})},
       C::shape_mismatch,
       "equal ranks"},
      {"Concatenate C4",
       "UnequalSizes",
       Concatenate{0},
       {f32({2, 3}), f32({2, 4})},
       C::shape_mismatch,
       "off axis 0"},
      {"Concatenate C4",
       "SymbolAndNumber",
       Concatenate{0},
       {f32({2, B}), f32({2, 4})},
       C::symbolic_shape_mismatch,
       "off axis 0"},
      {"Concatenate C5",
       "TooLarge",
       Concatenate{0},
       {f32({std::int64_t{1} << 62}), f32({std::int64_t{1} << 62})},
       C::invalid_argument,
       "63 bits"},

      {"Pad C1",
       "LowTooShort",
       Pad{{}, {0}, {0}},
       {f32({2}), f32({})},
       C::shape_mismatch,
       "found 0 entries"},
      {"Pad C1",
       "HighTooLong",
       Pad{{0}, {0, 0}, {0}},
       {f32({2}), f32({})},
       C::shape_mismatch,
       "found 2 entries"},
      {"Pad C1",
       "InteriorTooShort",
       Pad{{0}, {0}, {}},
       {f32({2}), f32({})},
       C::shape_mismatch,
       "found 0 entries"},
      {"Pad C2",
       "ValueOfAnotherDtype",
       Pad{{0}, {0}, {0}},
       {f32({2}), i32({})},
       C::dtype_mismatch,
       "padding value of dtype i32, expected f32"},
      {"Pad C3",
       "ValueNotScalar",
       Pad{{0}, {0}, {0}},
       {f32({2}), f32({1})},
       C::shape_mismatch,
       "[1], expected rank 0"},
      {"Pad C4",
       "InteriorNegative",
       Pad{{0}, {0}, {-1}},
       {f32({2}), f32({})},
       C::invalid_attribute,
       "interior padding -1"},
      {"Pad C5",
       "CroppedBelowZero",
       Pad{{-2}, {-1}, {0}},
       {f32({2}), f32({})},
       C::invalid_attribute,
       "axis 0"},

      {"Reduce C1",
       "AxisOutOfRange",
       Reduce{Reduction::sum, {2}},
       {f32({2, 3})},
       C::reduction_shape_mismatch,
       "[2]"},
      {"Reduce C1",
       "AxisRepeated",
       Reduce{Reduction::sum, {1, -1}},
       {f32({2, 3})},
       C::reduction_shape_mismatch,
       "[1, 1]"},
      {"Reduce C2",
       "SumOfI1",
       Reduce{Reduction::sum, {0}},
       {i1({2})},
       C::dtype_mismatch,
       "found dtype i1"},
      {"Reduce C2",
       "AndOfF32",
       Reduce{Reduction::and_, {0}},
       {f32({2})},
       C::dtype_mismatch,
       "found dtype f32"},

      {"Mean C1",
       "AxisOutOfRange",
       Mean{{0, 2}, false},
       {f32({2, 3})},
       C::reduction_shape_mismatch,
       "[0, 2]"},
      {"Mean C1",
       "AxisRepeated",
       Mean{{0, 0}, false},
       {f32({2, 3})},
       C::reduction_shape_mismatch,
       "[0, 0]"},
      {"Mean C2",
       "Integers",
       Mean{{0}, false},
       {i32({2})},
       C::dtype_not_differentiable,
       "found dtype i32"},

      {"DotGeneral C1",
       "ContractingCountsDiffer",
       dot({}, {}, {1}, {}),
       {f32({2, 3}), f32({3, 2})},
       C::matmul_shape_mismatch,
       "as many on both sides"},
      {"DotGeneral C1",
       "BatchCountsDiffer",
       dot({0}, {}, {1}, {0}),
       {f32({2, 3}), f32({3, 2})},
       C::matmul_shape_mismatch,
       "as many on both sides"},
      {"DotGeneral C2",
       "AxisOutOfRange",
       dot({}, {}, {2}, {0}),
       {f32({2, 3}), f32({3, 2})},
       C::matmul_shape_mismatch,
       "rank 2"},
      {"DotGeneral C2",
       "BatchIsContracted",
       dot({0}, {0}, {0}, {1}),
       {f32({2, 2}), f32({2, 2})},
       C::matmul_shape_mismatch,
       "unique axes"},
      {"DotGeneral C3",
       "BatchSizesDiffer",
       dot({0}, {0}, {2}, {1}),
       {f32({2, 3, 4}), f32({3, 4, 5})},
       C::matmul_shape_mismatch,
       "sizes 2 and 3"},
      {"DotGeneral C4",
       "InnerDimsDiffer",
       dot({}, {}, {1}, {0}),
       {f32({2, 3}), f32({4, 5})},
       C::matmul_shape_mismatch,
       "sizes 3 and 4 in [2, 3] and [4, 5]"},
      {"DotGeneral C4",
       "SymbolAndNumber",
       dot({}, {}, {1}, {0}),
       {f32({2, B}), f32({4, 5})},
       C::symbolic_shape_mismatch,
       "[B] and 4"},
      {"DotGeneral C5",
       "UnequalDtypes",
       dot({}, {}, {1}, {0}),
       {f32({2, 3}), i32({3, 2})},
       C::dtype_mismatch,
       "f32 and i32"},
      {"DotGeneral C6",
       "FloatsToInteger",
       dot({}, {}, {1}, {0}, DType::i32),
       {f32({2, 3}), f32({3, 2})},
       C::dtype_mismatch,
       "result of dtype i32"},
      {"DotGeneral C6",
       "Logical",
       dot({}, {}, {1}, {0}, DType::i1),
       {i1({2, 3}), i1({3, 2})},
       C::dtype_mismatch,
       "i1"},
  };
}

TEST(Inference, EachConstraint_IsEnforcedAndCited) {
  for (const Violation& v : violations()) {
    SCOPED_TRACE(v.constraint + "_" + v.what);
    const Error error = error_of([&] { build(v.op, v.operands); });
    EXPECT_EQ(error.category(), v.category) << error.what();
    EXPECT_THAT(error.message(), StartsWith(v.constraint + ": "));
    EXPECT_THAT(error.message(), HasSubstr(v.message));
    EXPECT_EQ(error.node(), "%0 " + std::string(info(v.op).text_name));
  }
}

TEST(Inference, ArityAndLiteralsOfOtherOps_AreChecked) {
  const Literal one = Literal::one(DType::f32);
  EXPECT_EQ(error_of([] { build(Add{}, {f32({2})}); }).category(), Category::arity_mismatch);
  EXPECT_EQ(error_of([] {
              build(Negate{}, {f32({2}), f32({2})});
            }).category(),
            Category::arity_mismatch);
  EXPECT_EQ(error_of([&] { build(Reshape{{1}}, {one}); }).category(), Category::invalid_literal);
  EXPECT_EQ(error_of([&] {
              build(Reduce{Reduction::sum, {}}, {one});
            }).category(),
            Category::invalid_literal);
}

TEST(Inference, SizeNeededButUnknown_IsUnresolved) {
  const auto category = [](const Op& op, const Operands& operands) {
    return error_of([&] { build(op, operands); }).category();
  };
  EXPECT_EQ(category(Concatenate{0}, {f32({B}), f32({B})}), Category::unresolved_symbolic_shape);
  EXPECT_EQ(category(Pad{{1}, {0}, {0}}, {f32({B}), f32({})}), Category::unresolved_symbolic_shape);
  EXPECT_EQ(category(Slice{{1}, {B}, {1}}, {f32({B})}), Category::unresolved_symbolic_shape);
}

// The result types of operands that fit.
struct Fitting {
  Op op;
  std::vector<Type> operands;
  Type result;
};

TEST(Inference, ResultTypes_AreRight) {
  const Fitting cases[] = {
      {Add{}, {f32({2, 1}), f32({1, 3})}, f32({2, 3})},
      {Add{}, {f32({}), f32({B, 3})}, f32({B, 3})},
      {Add{}, {f32({B, 1}), f32({1, 0})}, f32({B, 0})},
      {Compare{}, {f32({2}), f32({2})}, i1({2})},
      {IsFinite{}, {f32({2})}, i1({2})},
      {Convert{DType::i32}, {f32({2})}, i32({2})},
      {Select{}, {i1({}), f32({2, 1}), f32({1, 3})}, f32({2, 3})},
      {BroadcastInDim{{3, B}, {1, 0}}, {f32({B, 1})}, f32({3, B})},
      {Reshape{{B * Dim(3)}}, {f32({B, 3})}, f32({B * Dim(3)})},
      {Transpose{{2, 0, 1}}, {f32({2, B, 4})}, f32({4, 2, B})},
      {Slice{{0, 1}, {B, 6}, {1, 2}}, {f32({B, 7})}, f32({B, 3})},
      {Concatenate{1}, {f32({B, 3}), f32({B, 0}), f32({B, 2})}, f32({B, 5})},
      {Pad{{1, 0}, {-2, 0}, {2, 0}}, {f32({3, B}), f32({})}, f32({6, B})},
      {Reduce{Reduction::max, {0, 2}}, {i32({2, B, 4})}, i32({B})},
      {Mean{{1}, true}, {f32({B, 4})}, f32({B, 1})},
      {Mean{{1}, false}, {f32({B, 4})}, f32({B})},
      {dot({0}, {2}, {2}, {0}), {f32({B, 3, 4}), f32({4, 5, B})}, f32({B, 3, 5})},
      {dot({}, {}, {}, {}, DType::i64), {i32({2}), i32({3})}, {DType::i64, {2, 3}}},
  };
  for (const Fitting& fitting : cases) {
    std::vector<OperandType> operands;
    for (const Type& type : fitting.operands) operands.emplace_back(&type);
    EXPECT_EQ(infer(fitting.op, operands), fitting.result) << info(fitting.op).name;
  }
}

}  // namespace
}  // namespace mulgrad
