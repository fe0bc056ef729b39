#include "lowering/legalize.h"

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/expr.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "lowering/target.h"
#include "tests/support/golden_cases.h"
#include "tests/support/near.h"
#include "tests/support/op_cases.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

using ::testing::HasSubstr;
using testing::same_values;

Program program_of(const Type& x, const std::function<Var(Var)>& build) {
  Builder b;
  b.output("out", build({b, b.input("x", x)}).id());
  return b.finish();
}

// Legalizes, and checks what holds for every success: only ops of the target, a second run that
// changes nothing, and the values as the emitted regions promise.
PassResult legalized(const Program& program, const Target& target) {
  const Pass pass = legalize_to_matmul(target);
  PassResult result = pass.run(program);
  EXPECT_EQ(only_target_ops(target).violation(result.program), std::nullopt) << print(program);
  const PassResult again = pass.run(result.program);
  EXPECT_FALSE(again.changed) << print(result.program);
  EXPECT_EQ(again.program, result.program);
  Numerics numerics;
  for (const Region& region : result.regions) numerics = numerics | region.numerics;
  EXPECT_TRUE(same_values(program, result.program, numerics))
      << target.name() << "\n"
      << print(program) << print(result.program);
  return result;
}

std::vector<Target> matmul_targets() {
  return {Target::matmul_only(), Target::matmul_move(), Target::matmul_batched()};
}

std::vector<Axes> subsets(std::int64_t rank) {
  std::vector<Axes> result;
  for (int mask = 0; mask < (1 << rank); ++mask) {
    Axes axes;
    for (int i = 0; i < rank; ++i) {
      if ((mask >> i & 1) != 0) axes.push_back(i);
    }
    result.push_back(axes);
  }
  return result;
}

// Ranks 0 to 4; sizes 0 and 1 among them.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes{
      {},     {1},       {5},       {0},       {2, 3},    {1, 4},    {4, 1},       {0, 3},
      {2, 0}, {2, 3, 4}, {3, 1, 2}, {2, 0, 3}, {1, 1, 1}, {2, 2, 3}, {2, 3, 2, 2}, {1, 3, 1, 2}};
  return kShapes;
}

void check_every_reduction(DType dtype, const std::vector<Target>& targets,
                           const std::function<Var(Var, Axes)>& reduction) {
  for (const Shape& shape : shapes()) {
    for (const Axes& axes : subsets(shape.rank())) {
      const Program program = program_of({dtype, shape}, [&](Var x) { return reduction(x, axes); });
      for (const Target& target : targets) legalized(program, target);
    }
  }
}

TEST(LegalizeSum, EveryShapeAndAxes_IsAProduct) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    check_every_reduction(dtype, matmul_targets(), [](Var x, Axes axes) { return sum(x, axes); });
  }
}

TEST(LegalizeMean, EveryShapeAndAxes_IsAProductAndADivision) {
  check_every_reduction(DType::f32, matmul_targets(),
                        [](Var x, Axes axes) { return mean(x, axes); });
  check_every_reduction(DType::f64, matmul_targets(),
                        [](Var x, Axes axes) { return mean(x, axes, KeepDims::yes); });
}

TEST(LegalizeExtremum, EveryShapeAndAxes_Agrees) {
  for (const Reduction kind : {Reduction::max, Reduction::min}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      check_every_reduction(dtype, matmul_targets(),
                            [&](Var x, Axes axes) { return reduce(kind, x, axes); });
    }
  }
}

TEST(LegalizeProduct, EveryShapeAndAxes_AgreesWhereThereAreSlices) {
  check_every_reduction(DType::f64, {Target::matmul_move()},
                        [](Var x, Axes axes) { return reduce(Reduction::product, x, axes); });
}

TEST(LegalizeLogicalReduction, EveryShapeAndAxes_Agrees) {
  for (const Reduction kind : {Reduction::and_, Reduction::or_}) {
    check_every_reduction(DType::f32, matmul_targets(), [&](Var x, Axes axes) {
      return convert(reduce(kind, compare(Comparison::GT, x, 0), axes), DType::f32);
    });
  }
}

TEST(LegalizeBroadcast, EveryPlacementOfAxes_Agrees) {
  struct Case {
    Shape from;
    Shape to;
    Axes dims;
  };
  const std::vector<Case> cases{
      {{}, {}, {}},
      {{}, {3}, {}},
      {{}, {2, 0}, {}},
      {{}, {2, 3}, {}},
      {{1}, {4}, {0}},
      {{1, 1}, {2, 3}, {1, 0}},
      {{3}, {3}, {0}},
      {{3}, {2, 3}, {1}},
      {{3}, {3, 2}, {0}},
      {{3}, {2, 3, 4}, {1}},
      {{3}, {1, 3, 4}, {1}},
      {{3}, {4, 3, 1}, {1}},
      {{2, 3}, {2, 3, 4}, {0, 1}},
      {{2, 3}, {4, 2, 3}, {1, 2}},
      {{2, 3}, {2, 4, 3}, {0, 2}},
      {{2, 3}, {3, 2}, {1, 0}},
      {{2, 3}, {3, 4, 2}, {2, 0}},
      {{1, 3}, {3, 2}, {1, 0}},
      {{1, 3}, {2, 3}, {0, 1}},
      {{2, 1}, {2, 3}, {0, 1}},
      {{2, 1, 3}, {2, 4, 3}, {0, 1, 2}},
      {{1, 3, 1}, {2, 3, 4}, {0, 1, 2}},
      {{2, 3}, {2, 5, 3, 4}, {0, 2}},
      {{2, 3}, {5, 3, 4, 2}, {3, 1}},
      {{0}, {0, 3}, {0}},
      {{0}, {3, 0}, {1}},
      {{3}, {0, 3}, {1}},
      {{2, 1}, {2, 0}, {0, 1}},
      {{1, 0}, {4, 0}, {0, 1}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.from.to_string() + " to " + test.to.to_string());
    for (const Target& target : matmul_targets()) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        legalized(program_of({dtype, test.from},
                             [&](Var x) { return broadcast_in_dim(x, test.to, test.dims); }),
                  target);
      }
      legalized(program_of({DType::f32, test.from},
                           [&](Var x) {
                             const Var p = compare(Comparison::GT, x, 0);
                             return convert(broadcast_in_dim(p, test.to, test.dims), DType::f32);
                           }),
                target);
    }
  }
}

TEST(LegalizeBroadcast, SpecialValues_KeepAllButTheSignOfZero) {
  const Program program = program_of({DType::f32, {4}}, [](Var x) {
    return broadcast_in_dim(x, {3, 4}, {1});
  });
  const PassResult result = legalized(program, Target::matmul_only());
  ASSERT_EQ(result.regions.size(), 1u);
  EXPECT_EQ(result.regions[0].numerics, (Numerics{.sign_of_zero = true}));
  const float inf = std::numeric_limits<float>::infinity();
  const std::array inputs{Tensor::of<float>({4}, {-0.0F, 1, -0.0F, inf})};
  EXPECT_TRUE(testing::near(interpret(result.program, inputs)[0],
                            Tensor::of<float>({3, 4}, {0, 1, 0, inf, 0, 1, 0, inf, 0, 1, 0, inf}),
                            {.zero_sign = testing::ZeroSign::free}));
}

TEST(LegalizeBroadcast, SingleElement_IsBitExact) {
  const PassResult result = legalized(program_of({DType::f32, {1, 1}},
                                                 [](Var x) {
                                                   return broadcast_in_dim(x, {2, 3}, {0, 1});
                                                 }),
                                      Target::matmul_only());
  EXPECT_EQ(result.regions[0].numerics, Numerics());
}

TEST(LegalizeBroadcast, OfAFill_IsAFill) {
  Builder b;
  const Var one = fill(b, Literal::one(DType::f32), {3});
  b.output("out", broadcast_in_dim(one, {2, 3}, {1}).id());
  const PassResult result = legalized(b.finish(), Target::matmul_only());
  const Node& node = result.program.node(result.program.outputs()[0].value);
  EXPECT_EQ(node.op, Op(Fill{Literal::one(DType::f32), {2, 3}}));
}

// Row maxima for every number of columns, with every kind of value that could go wrong.
TEST(LegalizeMax, RowsOfEveryWidth_AreRight) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float lowest = std::numeric_limits<float>::lowest();
  for (std::int64_t n = 1; n <= 17; ++n) {
    SCOPED_TRACE(n);
    const std::int64_t rows = 7 + n;
    std::vector<float> x(static_cast<std::size_t>(rows * n));
    std::vector<float> expected(static_cast<std::size_t>(rows));
    const auto set_row = [&](std::int64_t row, float value, float at_end, float max) {
      for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(row * n + i)] = value;
      x[static_cast<std::size_t>(row * n + n - 1)] = at_end;
      expected[static_cast<std::size_t>(row)] = max;
    };
    set_row(0, -inf, -inf, -inf);
    set_row(1, -inf, nan, nan);
    set_row(2, inf, nan, nan);
    set_row(3, -inf, inf, inf);
    set_row(4, -inf, lowest, lowest);
    set_row(5, -inf, 2, 2);
    set_row(6, -lowest, -lowest, -lowest);
    // The maximum at each place.
    for (std::int64_t row = 7; row < rows; ++row) {
      set_row(row, -1e-45F, -1e-45F, 3e-45F);
      x[static_cast<std::size_t>(row * n + row - 7)] = 3e-45F;
    }
    for (const Target& target : matmul_targets()) {
      const Program program =
          program_of({DType::f32, {rows, n}}, [](Var v) { return reduce(Reduction::max, v, {1}); });
      const std::array inputs{Tensor::of<float>({rows, n}, x)};
      EXPECT_TRUE(testing::near(interpret(legalized(program, target).program, inputs)[0],
                                Tensor::of<float>({rows}, expected)))
          << target.name();
    }
  }
}

TEST(LegalizeMax, FiniteGuard_Holds) {
  const float inf = std::numeric_limits<float>::infinity();
  const Program program =
      program_of({DType::f32, {1, 4}}, [](Var v) { return reduce(Reduction::max, v, {1}); });
  const std::array inputs{Tensor::of<float>({1, 4}, {0, -inf, 1, 2})};
  EXPECT_EQ(interpret(legalized(program, Target::matmul_only()).program, inputs)[0],
            Tensor::of<float>({1}, {2}));
}

TEST(LegalizeMax, Numerics_AreThoseOfTheRoute) {
  const Program program =
      program_of({DType::f32, {3, 5}}, [](Var v) { return reduce(Reduction::max, v, {1}); });
  EXPECT_EQ(legalized(program, Target::matmul_only()).regions[0].numerics,
            (Numerics{.sign_of_zero = true, .needs_exact_product = true}));
  EXPECT_EQ(legalized(program, Target::matmul_move()).regions[0].numerics, Numerics());
}

TEST(LegalizeMax, Shifts_AreLogarithmicallyMany) {
  for (const auto& [columns, shifts] : {std::pair{2, 1}, {10, 4}, {16, 4}, {17, 5}}) {
    const Program program = program_of({DType::f32, {3, columns}},
                                       [](Var v) { return reduce(Reduction::max, v, {1}); });
    const Program result = legalized(program, Target::matmul_only()).program;
    int square = 0;
    for (const Node& node : result.nodes()) {
      const auto* value = std::get_if<Constant>(&node.op);
      square += value != nullptr && node.type.shape == Shape{columns, columns} ? 1 : 0;
    }
    EXPECT_EQ(square, shifts) << columns;
  }
}

struct DotCase {
  Shape lhs;
  Shape rhs;
  DotGeneral op;
};

Program dot_program(DType dtype, const DotCase& test) {
  Builder b;
  const Var lhs(b, b.input("lhs", {dtype, test.lhs}));
  const Var rhs(b, b.input("rhs", {dtype, test.rhs}));
  DotGeneral op = test.op;
  op.dtype = dtype;
  b.output("out", dot_general(lhs, rhs, op).id());
  return b.finish();
}

TEST(LegalizeDot, AnyContraction_IsAPlainProduct) {
  const std::vector<DotCase> cases{
      {{3, 2}, {3, 4}, {{}, {}, {0}, {0}}},
      {{2, 3}, {4, 3}, {{}, {}, {1}, {1}}},
      {{3, 2}, {4, 3}, {{}, {}, {0}, {1}}},
      {{3}, {3}, {{}, {}, {0}, {0}}},
      {{2, 3}, {3}, {{}, {}, {1}, {0}}},
      {{3}, {3, 2}, {{}, {}, {0}, {0}}},
      {{2}, {3}, {}},
      {{}, {}, {}},
      {{2, 3}, {4, 1}, {}},
      {{2, 3, 4}, {4, 5}, {{}, {}, {2}, {0}}},
      {{2, 3, 4}, {4, 3, 5}, {{}, {}, {1, 2}, {1, 0}}},
      {{2, 3, 4}, {4, 3, 5}, {{}, {}, {2, 1}, {0, 1}}},
      {{3, 2, 4}, {5, 4, 3}, {{}, {}, {0, 2}, {2, 1}}},
      {{2, 3}, {2, 3}, {{}, {}, {0, 1}, {0, 1}}},
      {{2, 0}, {0, 3}, {{}, {}, {1}, {0}}},
      {{2, 0, 1}, {0, 3}, {{}, {}, {1}, {0}}},
      {{1, 2, 3}, {1, 3, 4}, {{0}, {0}, {2}, {1}}},
  };
  for (const DotCase& test : cases) {
    SCOPED_TRACE(test.lhs.to_string() + " by " + test.rhs.to_string());
    for (const Target& target : matmul_targets()) {
      legalized(dot_program(DType::f32, test), target);
      legalized(dot_program(DType::f64, test), target);
    }
  }
}

std::int64_t batch_of(const DotCase& test) {
  std::int64_t batch = 1;
  for (const std::int64_t axis : test.op.lhs_batch) batch *= test.lhs[axis].size();
  return batch;
}

TEST(LegalizeDot, Batches_Agree) {
  const std::vector<DotCase> cases{
      {{5, 2, 3}, {5, 3, 4}, {{0}, {0}, {2}, {1}}},
      {{2, 5, 3}, {3, 4, 5}, {{1}, {2}, {2}, {0}}},
      {{2, 3, 4, 5}, {3, 2, 5}, {{0, 1}, {1, 0}, {3}, {2}}},
      {{4, 3}, {4, 3}, {{0}, {0}, {1}, {1}}},
      {{4}, {4}, {{0}, {0}, {}, {}}},
      {{0, 2, 3}, {0, 3, 4}, {{0}, {0}, {2}, {1}}},
      {{3, 2, 0}, {3, 0, 4}, {{0}, {0}, {2}, {1}}},
      {{3, 0, 2}, {3, 2, 4}, {{0}, {0}, {2}, {1}}},
      {{3, 2, 4, 5}, {6, 3, 5, 4}, {{0}, {1}, {3, 2}, {2, 3}}},
  };
  for (const DotCase& test : cases) {
    SCOPED_TRACE(test.lhs.to_string() + " by " + test.rhs.to_string());
    for (const Target& target : matmul_targets()) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Program program = dot_program(dtype, test);
        const PassResult result = legalized(program, target);
        if (target.name() != "matmul_only" || result.regions.empty()) continue;
        const std::int64_t batch = batch_of(test);
        EXPECT_EQ(result.regions[0].work_factor, std::max<std::int64_t>(batch, 1));
        EXPECT_EQ(result.regions[0].numerics,
                  (Numerics{.sign_of_zero = true, .needs_exact_product = batch > 1}));
      }
    }
  }
}

// A target with leading batching dims gets one product and keeps the dims apart.
TEST(LegalizeDot, BatchedTarget_TransposesAroundOneProduct) {
  const DotCase scores{{2, 4, 3, 5}, {2, 4, 6, 5}, {{0, 1}, {0, 1}, {3}, {3}}};
  const Program result =
      legalized(dot_program(DType::f32, scores), Target::matmul_batched()).program;
  ASSERT_EQ(result.nodes().size(), 2u);
  EXPECT_EQ(result.nodes()[0].op, Op(Transpose{{0, 1, 3, 2}}));
  EXPECT_EQ(result.nodes()[1].op, Op(DotGeneral{{0, 1}, {0, 1}, {3}, {2}, DType::f32}));
}

// What is not finite stays in its batch, on the diagonal of the result alone, whichever side it
// comes from, and blocks that overflow between batches are not seen.
TEST(LegalizeDot, BlockProduct_KeepsInfAndNaNInTheirBatch) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float huge = 3e38F;
  const DotCase test{{4, 2, 2}, {4, 2, 2}, {{0}, {0}, {2}, {1}}};
  const Program program = dot_program(DType::f32, test);
  const std::array inputs{
      Tensor::of<float>({4, 2, 2}, {inf, 1, 2, 3, 1, nan, 4, 5, huge, 0, 0, 1, 1, 0, 0, 1}),
      Tensor::of<float>({4, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 1, huge, -inf, huge, nan})};
  const Tensor expected = Tensor::of<float>(
      {4, 2, 2}, {inf, inf, 11, 16, nan, nan, 55, 64, huge, 0, 0, 1, huge, nan, huge, nan});
  EXPECT_TRUE(testing::near(interpret(program, inputs)[0], expected));
  EXPECT_TRUE(testing::near(interpret(legalized(program, Target::matmul_only()).program, inputs)[0],
                            expected, {.zero_sign = testing::ZeroSign::free}));
}

// No constant is of the size of the mask.
TEST(LegalizeDot, BlockProduct_OfTheMostBatches_HasSmallConstants) {
  const DotCase test{{64, 3, 1}, {64, 1, 5}, {{0}, {0}, {2}, {1}}};
  const Program result = legalized(dot_program(DType::f32, test), Target::matmul_only()).program;
  for (const Node& node : result.nodes()) {
    if (!std::holds_alternative<Constant>(node.op)) continue;
    EXPECT_LE(node.type.shape.elements().size(), 64 * 3 * 5 * 2);
  }
}

TEST(LegalizeDot, ResultOfAnotherDType_IsComputedInTheWider) {
  for (const auto& [from, to] : {std::pair{DType::f32, DType::f64}, {DType::f64, DType::f32}}) {
    Builder b;
    const Var lhs(b, b.input("lhs", {from, {3, 4}}));
    const Var rhs(b, b.input("rhs", {from, {4, 2}}));
    b.output("out", dot_general(lhs, rhs, {{}, {}, {1}, {0}, to}).id());
    legalized(b.finish(), Target::matmul_only());
  }
}

TEST(LegalizeElementwise, SizesOfOne_AreBroadcast) {
  for (const Target& target : matmul_targets()) {
    Builder b;
    const Var row(b, b.input("row", {DType::f32, {1, 4}}));
    const Var column(b, b.input("column", {DType::f32, {3, 1}}));
    const Var full(b, b.input("full", {DType::f32, {3, 4}}));
    const Var scalar(b, b.input("scalar", {DType::f32, {}}));
    b.output("a", (row + column).id());
    b.output("b", (full / row * scalar).id());
    b.output("c", select(compare(Comparison::GT, column, 0), full, row).id());
    b.output("d", clamp(row, full, 2).id());
    const Var single(b, b.input("single", {DType::f32, {1, 1}}));
    b.output("e", (row * single).id());
    b.output("f", select(compare(Comparison::GT, single, 0), full, single).id());
    legalized(b.finish(), target);
  }
}

TEST(LegalizeElementwise, SingleElement_IsReadAsRankZero) {
  Builder b;
  const Var full(b, b.input("full", {DType::f32, {3, 4}}));
  const Var single(b, b.input("single", {DType::f32, {1, 1}}));
  b.output("y", (full / single).id());
  const PassResult result = legalized(b.finish(), Target::matmul_only());
  EXPECT_EQ(result.regions[0].numerics, Numerics());
  ASSERT_EQ(result.program.nodes().size(), 2u);
  EXPECT_EQ(result.program.nodes()[0].op, Op(Reshape{{}}));
}

TEST(LegalizeLogical, OtherOpsOnI1_GoThroughNumbers) {
  const std::vector<std::function<Var(Var)>> cases{
      [](Var p) {
        return reshape(p, {3, 2});
      },
      [](Var p) { return transpose(p); },
      [](Var p) { return select(p, logical_not(p), p); },
      [](Var p) { return compare(Comparison::LT, p, logical_not(p)); },
      [](Var p) { return convert(convert(p, DType::f64), DType::i1); },
      [](Var p) {
        return logical_or(p, fill(p.builder(), Literal::one(DType::i1), Shape{2, 3}));
      },
      [](Var p) {
        const Tensor mask = Tensor::of<bool>({2, 3}, {true, false, true, true, false, false});
        return logical_and(p, constant(p.builder(), mask));
      },
  };
  for (const Target& target : matmul_targets()) {
    for (const auto& build : cases) {
      legalized(program_of({DType::f32, {2, 3}},
                           [&](Var x) {
                             return convert(build(compare(Comparison::GT, x, 0)), DType::f32);
                           }),
                target);
    }
  }
  legalized(program_of({DType::f32, {2, 3}},
                       [&](Var x) {
                         const Var p = compare(Comparison::GT, x, 0);
                         const std::array parts{slice(p, {0, 1}, {2, 3}), p};
                         return convert(concatenate(parts, 1), DType::f32);
                       }),
            Target::matmul_move());
}

TEST(LegalizeIota, IsAConstant) {
  for (const Shape& shape : {Shape{5}, Shape{2, 3}, Shape{1, 1}, Shape{0, 3}}) {
    legalized(program_of({DType::f32, shape},
                         [&](Var x) {
                           return x + iota(x.builder(), DType::f32, shape, shape.rank() - 1);
                         }),
              Target::matmul_only());
  }
}

// What the pass leaves, and what it says about it.
TEST(Legalize, NoRule_LeavesTheNodeAndSaysWhy) {
  struct Case {
    std::string name;
    std::function<void(Builder&)> build;
    std::string explanation;
  };
  const auto f = DType::f32;
  const std::vector<Case> cases{
      {"integers",
       [](Builder& b) {
         b.output("y", sum(Var(b, b.input("x", {DType::i32, {3}}))).id());
       },
       "%0 reduce: the target matmul_only does not have this op; its rule emits"},
      {"16-bit floats",
       [](Builder& b) {
         b.output("y", sum(Var(b, b.input("x", {DType::bf16, {3}}))).id());
       },
       "its rule emits stablehlo.reshape: found an input or output of the program of dtype bf16"},
      {"a symbolic size",
       [=](Builder& b) {
         b.output("y", sum(Var(b, b.input("x", {f, {Dim::symbol("B")}}))).id());
       },
       "bind first"},
      {"a product of elements",
       [=](Builder& b) {
         b.output("y", reduce(Reduction::product, Var(b, b.input("x", {f, {3}})), {0}).id());
       },
       "needs slices"},
      {"a long maximum",
       [=](Builder& b) {
         b.output("y", reduce(Reduction::max, Var(b, b.input("x", {f, {4097}})), {0}).id());
       },
       "larger than 4096"},
      {"a large iota", [=](Builder& b) { b.output("y", iota(b, f, {(1 << 24) + 1}, 0).id()); },
       "more than 16777216 elements"},
      {"a batch beyond the limit",
       [=](Builder& b) {
         const Var lhs(b, b.input("lhs", {f, {5, 13, 2, 3}}));
         const Var rhs(b, b.input("rhs", {f, {5, 13, 3, 4}}));
         b.output("y", dot_general(lhs, rhs, {{0, 1}, {0, 1}, {3}, {2}, f}).id());
       },
       "%0 dot_general: found batching dims [0, 1] x [0, 1], expected none; a masked block product "
       "would do 65 times the work, the limit is 64 times"},
      {"a batch far beyond the limit",
       [=](Builder& b) {
         const std::int64_t far = std::int64_t{1} << 40;
         const Var lhs(b, b.input("lhs", {f, {far, 1, 1}}));
         const Var rhs(b, b.input("rhs", {f, {far, 1, 1}}));
         b.output("y", dot_general(lhs, rhs, {{0}, {0}, {2}, {1}, f}).id());
       },
       "more than 4096 times the work"},
      {"a slice",
       [=](Builder& b) {
         b.output("y", slice(Var(b, b.input("x", {f, {3}})), {1}, {3}).id());
       },
       "there is no rule for it"},
  };
  const Pass pass = legalize_to_matmul(Target::matmul_only());
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    Builder b;
    test.build(b);
    const Program program = b.finish();
    const PassResult result = pass.run(program);
    EXPECT_FALSE(result.changed) << print(result.program);
    EXPECT_EQ(result.program, program);
    const std::vector<std::string> lines = pass.explain(program);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0], HasSubstr(test.explanation));
  }
}

TEST(Legalize, UnreachableNode_IsLeft) {
  const Program program = program_of({DType::f32, {3}}, [](Var x) {
    sum(x);
    return x + x;
  });
  EXPECT_FALSE(legalize_to_matmul(Target::matmul_only()).run(program).changed);
}

// The rules emit only what the target has, also where the target is an arbitrary set of ops.
TEST(Legalize, TargetWithoutFill_KeepsItsSums) {
  const Program program = program_of({DType::f32, {3}}, [](Var x) { return sum(x); });
  const std::array without{OpKind::DotGeneral, OpKind::Reshape};
  EXPECT_FALSE(legalize_to_matmul(Target::of_ops("a", without)).run(program).changed);
  const std::array with{OpKind::DotGeneral, OpKind::Reshape, OpKind::Fill};
  legalized(program, Target::of_ops("b", with));
}

TEST(Legalize, TargetWithReduce_KeepsItForMeans) {
  const Program program = program_of({DType::f32, {3, 4}}, [](Var x) { return mean(x, {1}); });
  const std::array kinds{OpKind::Reduce, OpKind::Divide};
  const Program result = legalized(program, Target::of_ops("reducing", kinds)).program;
  ASSERT_EQ(result.nodes().size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Reduce>(result.nodes()[0].op));
}

TEST(Legalize, Cpu_ChangesNothing) {
  const Program program = program_of({DType::f32, {3, 4}}, [](Var x) {
    return stop_gradient(reduce(Reduction::max, x, {1}, KeepDims::yes)) +
           mean(x, {1}, KeepDims::yes);
  });
  EXPECT_FALSE(legalize_to_matmul(Target::cpu()).run(program).changed);
}

// Every op, dtype and form of the case table: what is rewritten keeps its values and is taken by
// the target, and what is left was explained.
TEST(Legalize, OpCases_KeepTheirValues) {
  int rewritten = 0;
  for (const testing::OpCase& op_case : testing::op_cases()) {
    SCOPED_TRACE(op_case.name);
    const Program program = testing::program_of(op_case);
    for (const Target& target : matmul_targets()) {
      const Pass pass = legalize_to_matmul(target);
      const PassResult result = pass.run(program);
      EXPECT_EQ(pass.explain(program).empty(), !target.refusal(program, 0).has_value());
      if (!result.changed) continue;
      ++rewritten;
      for (std::int64_t i = 0; i < std::ssize(result.program.nodes()); ++i) {
        EXPECT_EQ(target.refusal(result.program, i), std::nullopt);
      }
      EXPECT_FALSE(pass.run(result.program).changed);
      // Which infinity comes of a zero hangs on the sign that its broadcast may change.
      const bool reads_sign =
          kind_of(op_case.op) == OpKind::Divide || kind_of(op_case.op) == OpKind::Power;
      const Numerics& numerics = result.regions[0].numerics;
      if (reads_sign && numerics.sign_of_zero) continue;
      EXPECT_TRUE(same_values(program, result.program, numerics)) << print(result.program);
    }
  }
  EXPECT_GT(rewritten, 50);
}

TEST(Legalize, GoldenCases) {
  testing::check_golden_cases(legalize_to_matmul(Target::matmul_only()));
}

}  // namespace
}  // namespace mulgrad
