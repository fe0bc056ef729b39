// Every op case on the CPU backend against the interpreter, and what the table cannot show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "backends/cpu/kernels.h"
#include "backends/cpu/session.h"
#include "core/expr.h"
#include "core/interpreter.h"
#include "tests/support/conformance.h"
#include "tests/support/near.h"
#include "tests/support/op_cases.h"

namespace mulgrad {
namespace {

using testing::near;
using testing::OpCase;

bool has_kernels(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::i32:
    case DType::i64:
    case DType::i1:
      return true;
    default:
      return false;
  }
}

// Which nodes the interpreter may stand in for, as backends/cpu/registry.h says.
bool falls_back(const Program& program) {
  const Node& node = program.nodes().back();
  const OpClass op_class = info(node.op).op_class;
  if (op_class == OpClass::custom) return true;
  if (std::holds_alternative<StopGradient>(node.op)) return false;
  if (std::holds_alternative<Convert>(node.op) && program.inputs()[0].type == node.type) {
    return false;
  }
  if (op_class == OpClass::creation || op_class == OpClass::movement ||
      op_class == OpClass::broadcast) {
    return false;
  }
  std::vector<Type> types{node.type};
  for (const Input& input : program.inputs()) types.push_back(input.type);
  for (const Type& type : types) {
    if (!has_kernels(type.dtype)) return true;
    if (op_class == OpClass::product && (!is_float(type.dtype) || type.dtype != node.type.dtype)) {
      return true;
    }
  }
  return false;
}

// A new plan for every run.
std::vector<Tensor> run_on_the_cpu(const Program& program, std::span<const Tensor> inputs) {
  return CpuProgram(program).run(inputs);
}

TEST(CpuConformance, Kit_Passes) {
  const auto report = conformance::run(Target::cpu(), run_on_the_cpu);
  EXPECT_TRUE(report.passed()) << report.to_string();
}

// The same plan again and again, so that what a run leaves in the arena is there for the next.
TEST(CpuConformance, KitOnKeptPlans_Passes) {
  std::map<std::uint64_t, CpuProgram> plans;
  const auto report =
      conformance::run(Target::cpu(), [&](const Program& program, std::span<const Tensor> inputs) {
        auto found = plans.find(program.hash());
        if (found == plans.end()) found = plans.emplace(program.hash(), program).first;
        return found->second.run(inputs);
      });
  EXPECT_TRUE(report.passed()) << report.to_string();
}

TEST(CpuConformance, EveryOpCase_RunsOnAKernelWhereThereIsOne) {
  for (const OpCase& op_case : testing::op_cases()) {
    SCOPED_TRACE(op_case.name);
    const Program program = testing::program_of(op_case);
    const CpuProgram compiled(program);
    EXPECT_EQ(compiled.plan().fallbacks(), falls_back(program) ? 1u : 0u)
        << compiled.plan().print();
  }
}

// Target::cpu() takes no Custom op, so the kit leaves them out.
TEST(CpuConformance, CustomOps_AgreeWithTheInterpreter) {
  for (const OpCase& op_case : testing::op_cases()) {
    if (!std::holds_alternative<Custom>(op_case.op)) continue;
    SCOPED_TRACE(op_case.name);
    const Program program = testing::program_of(op_case);
    const std::vector<Tensor> inputs = testing::inputs_of(op_case);
    EXPECT_TRUE(near(CpuProgram(program).run(inputs)[0], interpret(program, inputs)[0]));
  }
}

struct ProductCase {
  std::string name;
  Shape lhs, rhs;
  DotGeneral op;
};

TEST(CpuConformance, EveryFormOfProduct_AgreesWithTheInterpreter) {
  const ProductCase cases[] = {
      {"plain", {3, 5}, {5, 4}, {{}, {}, {1}, {0}}},
      {"lhs transposed", {5, 3}, {5, 4}, {{}, {}, {0}, {0}}},
      {"rhs transposed", {3, 5}, {4, 5}, {{}, {}, {1}, {1}}},
      {"both transposed", {5, 3}, {4, 5}, {{}, {}, {0}, {1}}},
      {"vectors", {5}, {5}, {{}, {}, {0}, {0}}},
      {"outer", {3}, {4}, {{}, {}, {}, {}}},
      {"rank 3, last axis", {2, 3, 5}, {5, 4}, {{}, {}, {2}, {0}}},
      {"rank 3, middle axis", {2, 5, 3}, {5, 4}, {{}, {}, {1}, {0}}},
      {"two axes, swapped", {5, 2, 3}, {2, 4, 5}, {{}, {}, {0, 1}, {2, 0}}},
      {"two axes, unsorted", {5, 2, 3}, {2, 4, 5}, {{}, {}, {1, 0}, {0, 2}}},
      {"batch", {2, 3, 5}, {2, 5, 4}, {{0}, {0}, {2}, {1}}},
      {"batch in the middle", {3, 2, 5}, {5, 4, 2}, {{1}, {2}, {2}, {0}}},
      {"two batch axes, swapped", {2, 3, 4, 5}, {3, 2, 5, 6}, {{0, 1}, {1, 0}, {3}, {2}}},
      {"batch, no free axis", {4, 5}, {4, 5}, {{0}, {0}, {1}, {1}}},
      {"nothing summed", {3, 0}, {0, 4}, {{}, {}, {1}, {0}}},
      {"empty result", {0, 5}, {5, 4}, {{}, {}, {1}, {0}}},
      {"one row", {1, 300}, {300, 7}, {{}, {}, {1}, {0}}},
  };
  for (const ProductCase& product : cases) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(product.name);
      DotGeneral op = product.op;
      op.dtype = dtype;
      const OpCase op_case{
          "product " + product.name,
          op,
          {testing::CaseOperand{{dtype, product.lhs}}, testing::CaseOperand{{dtype, product.rhs}}}};
      const Program program = testing::program_of(op_case);
      CpuProgram compiled(program);
      EXPECT_EQ(compiled.plan().fallbacks(), 0u);
      const std::vector<Tensor> inputs = testing::inputs_of(op_case);
      const double of_largest = dtype == DType::f32 ? 1e-5 : 1e-13;
      EXPECT_TRUE(near(compiled.run(inputs)[0], interpret(program, inputs)[0],
                       {0, of_largest, testing::ZeroSign::free}));
    }
  }
}

TEST(CpuReduce, SumOfManyFloats_IsAccurate) {
  const std::int64_t n = 1 << 20;
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {n}}));
  builder.output("y", sum(x).id());
  CpuProgram compiled(builder.finish());
  Tensor values(DType::f32, {n});
  double exact = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>((i * 7919) % 10007) / 10007.0F;
    values.data<float>()[static_cast<std::size_t>(i)] = value;
    exact += value;
  }
  const double got = compiled.run(std::vector{values})[0].to_doubles()[0];
  EXPECT_NEAR(got / exact, 1, 1e-7);
}

// x broadcast against y by both ways at once, so that no axis merges.
TEST(CpuElementwise, BroadcastOverRankFive_AgreesWithTheInterpreter) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f64, {2, 1, 3, 1, 2}}));
  const Var y(builder, builder.input("y", {DType::f64, {1, 2, 1, 3, 2}}));
  const Var p(builder, builder.input("p", {DType::f64, {}}));
  builder.output("z", select(compare(Comparison::LT, x, y), x * p, y - x).id());
  builder.output("w", (x / y + 1.5).id());
  const Program program = builder.finish();
  const OpCase source{"rank five",
                      Select{},
                      {testing::CaseOperand{program.inputs()[0].type},
                       testing::CaseOperand{program.inputs()[1].type},
                       testing::CaseOperand{program.inputs()[2].type}}};
  const std::vector<Tensor> inputs = testing::inputs_of(source);
  const std::vector<Tensor> want = interpret(program, inputs);
  const std::vector<Tensor> got = CpuProgram(program).run(inputs);
  EXPECT_TRUE(near(got[0], want[0]));
  EXPECT_TRUE(near(got[1], want[1]));
}

// The elementwise kernels reuse memory; a value that is read again must outlive that.
TEST(CpuProgram, ReusedMemory_NeverHoldsAValueThatIsReadAgain) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {4, 4}}));
  Var a = x + 1.0;
  Var b = a * 0.5;
  for (int i = 0; i < 50; ++i) {
    const Var next = a * 0.25 + transpose(b) * 0.5;
    a = b - 0.125;
    b = matmul(next, x) * 0.125 + a;
  }
  builder.output("a", a.id());
  builder.output("b", b.id());
  builder.output("x", x.id());
  const Program program = builder.finish();
  const OpCase source{"reuse", Abs{}, {testing::CaseOperand{program.inputs()[0].type}}};
  const std::vector<Tensor> inputs = testing::inputs_of(source);
  CpuProgram compiled(program);
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> got = compiled.run(inputs);
    const std::vector<Tensor> want = interpret(program, inputs);
    EXPECT_TRUE(near(got[0], want[0], {1e-4, 1e-5}));
    EXPECT_TRUE(near(got[1], want[1], {1e-4, 1e-5}));
    EXPECT_EQ(got[2], inputs[0]);
  }
}

TEST(CpuProgram, Constants_CostNoCall) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {2, 3}}));
  const Var i = iota(builder, DType::f32, {2, 3}, 1);
  const Var c = constant(builder, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Var f = fill(builder, Literal::one(DType::f32), {2, 3});
  builder.output("y", reshape(x + i + c + f, {6}).id());
  CpuProgram compiled(builder.finish());
  EXPECT_EQ(compiled.plan().kernels(), 1u) << compiled.plan().print();
  EXPECT_EQ(compiled.run(std::vector{Tensor(DType::f32, {2, 3})})[0],
            Tensor::of<float>({6}, {2, 4, 6, 5, 7, 9}));
}

TEST(CpuProgram, WrongInputs_AreNamed) {
  Builder builder;
  builder.output("y", builder.input("x", {DType::f32, {2}}));
  CpuProgram compiled(builder.finish());
  const auto category = [&](std::vector<Tensor> inputs) {
    try {
      compiled.run(inputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.node(), inputs.empty() ? "" : "%arg0 \"x\"");
      return error.category();
    }
    return Category::io_error;
  };
  EXPECT_EQ(category({}), Category::invalid_argument);
  EXPECT_EQ(category({Tensor(DType::f64, {2})}), Category::dtype_mismatch);
  EXPECT_EQ(category({Tensor(DType::f32, {3})}), Category::shape_mismatch);
}

TEST(CpuProgram, UnboundProgram_IsRefused) {
  Builder builder;
  builder.output("y", builder.input("x", {DType::f32, {Dim::symbol("B")}}));
  const Program program = builder.finish();
  try {
    CpuProgram compiled(program);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::unresolved_symbolic_shape);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("B"));
  }
}

TEST(CpuProgram, MillionChainedNodes_ArePlannedRunAndDestroyed) {
  Builder builder;
  Var y(builder, builder.input("x", {DType::f32, {}}));
  for (int i = 0; i < 1000000; ++i) y = -y;
  builder.output("y", y.id());
  CpuProgram compiled(builder.finish());
  EXPECT_EQ(compiled.plan().kernels(), 1000000u / 64);  // loops have at most 64 steps
  EXPECT_EQ(compiled.plan().live_bytes(), 64u);
  EXPECT_EQ(compiled.run(std::vector{Tensor::scalar(2.5F)})[0], Tensor::scalar(2.5F));
}

}  // namespace
}  // namespace mulgrad
