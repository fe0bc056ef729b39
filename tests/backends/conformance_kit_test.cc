// The conformance kit finds each kind of broken implementation, by the check that names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "core/interpreter.h"
#include "tests/support/conformance.h"
#include "tests/support/scale.h"

namespace mulgrad {
namespace {

using conformance::Check;
using conformance::Report;
using ::testing::Contains;
using ::testing::HasSubstr;

// Changes the result of a node.
using Fault = std::function<Tensor(const Node&, std::span<const Tensor* const>, Tensor)>;

// The interpreter node by node, with a fault.
conformance::Runner runner_with(Fault fault) {
  return [fault = std::move(fault)](const Program& program, std::span<const Tensor> inputs) {
    std::vector<Tensor> nodes;
    nodes.reserve(program.nodes().size());
    const auto value = [&](ValueId id) -> const Tensor& {
      const auto index = static_cast<std::size_t>(id.index());
      return id.is_input() ? inputs[index] : nodes[index];
    };
    for (const Node& node : program.nodes()) {
      std::vector<const Tensor*> operands;
      for (const Operand& operand : node.operands) {
        operands.push_back(operand.is_literal() ? nullptr : &value(operand.value()));
      }
      nodes.push_back(fault(node, operands, evaluate_node(node, operands)));
    }
    std::vector<Tensor> outputs;
    for (const Output& output : program.outputs()) outputs.push_back(value(output.value));
    return outputs;
  };
}

// Applies f to every element of a float tensor.
template <class F>
Tensor each(const Tensor& tensor, F f) {
  std::vector<double> values = tensor.to_doubles();
  for (double& value : values) value = f(value);
  return Tensor::from_doubles(tensor.dtype(), {tensor.sizes().begin(), tensor.sizes().end()},
                              values);
}

bool is(const Node& node, OpKind kind) { return kind_of(node.op) == kind; }
bool is_float_product(const Node& node) {
  return is(node, OpKind::DotGeneral) && is_float(node.type.dtype);
}

// To ten bits behind the leading one, as tensor cores read f32.
double to_tf32(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11);
}

struct Broken {
  std::string name;
  Check check;          // by which it must be found
  std::string failing;  // the name of a case that must fail
  Fault fault;
};

// Multiplies what the memory held by beta = 0 instead of forgetting it.
Fault remembering() {
  auto memory = std::make_shared<std::map<std::string, Tensor>>();
  return [memory](const Node& node, std::span<const Tensor* const>, Tensor right) {
    if (!is_float_product(node)) return right;
    const auto old = memory->find(node.type.to_string());
    if (old != memory->end()) {
      const std::vector<double> before = old->second.to_doubles();
      std::size_t i = 0;
      right = each(right, [&](double value) { return value + 0 * before[i++]; });
    }
    memory->insert_or_assign(node.type.to_string(), right);
    return right;
  };
}

// Every other call is off by a rounding.
Fault wavering() {
  auto calls = std::make_shared<int>(0);
  return [calls](const Node& node, std::span<const Tensor* const>, Tensor right) {
    if (!is(node, OpKind::Tanh) || node.type.dtype != DType::f32 || ++*calls % 2 == 0) return right;
    return each(right, [](double value) { return value * (1 + 0x1p-23); });
  };
}

Tensor with_operands(const Node& node, std::span<const Tensor* const> operands,
                     const std::function<double(double)>& f) {
  std::vector<Tensor> changed(operands.size());
  std::vector<const Tensor*> pointers(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) continue;
    changed[i] = each(*operands[i], f);
    pointers[i] = &changed[i];
  }
  return evaluate_node(node, pointers);
}

Tensor with_tf32(const Node& node, std::span<const Tensor* const> operands, Tensor right) {
  return is_float_product(node) ? with_operands(node, operands, to_tf32) : right;
}

std::vector<Broken> broken_runners() {
  using Operands = std::span<const Tensor* const>;
  return {
      {"wrong op", Check::op_case, "subtract_f32_matrix",
       [](const Node& node, Operands operands, Tensor right) {
         if (!is(node, OpKind::Subtract)) return right;
         Node sum = node;
         sum.op = Add{};
         return evaluate_node(sum, operands);
       }},
      {"stale NaN", Check::stale_memory, "f32 product, 5x0x4", remembering()},
      {"TF32", Check::precision,
       testing::kSanitized ? "f32 product, 128x128x128 normals"
                           : "f32 product, 512x512x512 normals",
       with_tf32},
      {"TF32 in exact products", Check::exact_products, "f32 product, permuted rows", with_tf32},
      {"NaN lost in a maximum", Check::special_values, "maximum_f32_special",
       [](const Node& node, Operands operands, Tensor right) {
         if (!is(node, OpKind::Maximum) || !is_float(node.type.dtype)) return right;
         return with_operands(node, operands,
                              [](double x) { return std::isnan(x) ? -HUGE_VAL : x; });
       }},
      {"NaN lost in a reduction", Check::special_values, "reduce_f32_max_special",
       [](const Node& node, Operands operands, Tensor right) {
         if (!is(node, OpKind::Reduce) || !is_float(node.type.dtype)) return right;
         return with_operands(node, operands,
                              [](double x) { return std::isnan(x) ? -HUGE_VAL : x; });
       }},
      {"two runs differ", Check::repetition, "tanh_f32_matrix", wavering()},
      {"ones where nothing is summed", Check::size_zero, "f32 product, 2x0x1",
       [](const Node& node, Operands operands, Tensor right) {
         if (!is_float_product(node) || operands[0]->elements() != 0) return right;
         return each(right, [](double) { return 1.0; });
       }},
      {"refuses what is empty", Check::size_zero, "add_f64_empty",
       [](const Node& node, Operands, Tensor right) {
         if (is(node, OpKind::Add) && right.elements() == 0) throw std::runtime_error("empty");
         return right;
       }},
      {"wrong for single elements", Check::size_one, "f64 product, 1x1x1",
       [](const Node& node, Operands, Tensor right) {
         if (!is_float_product(node) || right.elements() != 1) return right;
         return each(right, [](double x) { return x + 1; });
       }},
      {"subnormals flushed", Check::special_values, "negate_f32_special",
       [](const Node& node, Operands, Tensor right) {
         if (node.type.dtype != DType::f32) return right;
         return each(right, [](double x) { return std::fabs(x) < 0x1p-126 ? 0 * x : x; });
       }},
      {"zeros skipped in products", Check::special_values, "f32 product, zero times infinity",
       [](const Node& node, Operands operands, Tensor right) {
         if (!is_float_product(node)) return right;
         // What a product gives that does not look at the other side of a zero.
         const Tensor finite =
             with_operands(node, operands, [](double x) { return std::isfinite(x) ? x : 0; });
         std::size_t i = 0;
         const std::vector<double> values = finite.to_doubles();
         return each(right, [&](double x) { return std::isnan(x) ? values[i++] : (++i, x); });
       }},
      {"infinity lost by ones", Check::zeros_and_ones, "f32 product, a column by ones",
       [](const Node& node, Operands, Tensor right) {
         if (!is_float_product(node)) return right;
         return each(right, [](double x) { return std::isinf(x) ? std::nan("") : x; });
       }},
      {"sums in a row of f32", Check::precision, "f32 product, a sum of 1048576",
       [](const Node& node, Operands operands, Tensor right) {
         if (!is_float_product(node) || right.elements() != 1 || node.type.dtype != DType::f32) {
           return right;
         }
         float sum = 0;
         for (std::int64_t i = 0; i < operands[0]->elements(); ++i) {
           const auto at = static_cast<std::size_t>(i);
           sum += operands[0]->data<float>()[at] * operands[1]->data<float>()[at];
         }
         return each(right, [sum](double) { return static_cast<double>(sum); });
       }},
      {"another type", Check::op_case, "reshape_f32_typical",
       [](const Node& node, Operands, Tensor right) {
         if (!is(node, OpKind::Reshape)) return right;
         return Tensor::from_doubles(right.dtype(), {right.elements()}, right.to_doubles());
       }},
  };
}

// What a device without wide kernels takes: enough for every check, and quick to run.
Target small_target() {
  const OpKind kinds[] = {OpKind::Add,    OpKind::Subtract, OpKind::Negate,  OpKind::Tanh,
                          OpKind::Reduce, OpKind::Maximum,  OpKind::Reshape, OpKind::DotGeneral};
  return Target::of_ops("small", kinds);
}

TEST(ConformanceKit, BrokenRunners_AreEachFoundByName) {
  for (const Broken& broken : broken_runners()) {
    SCOPED_TRACE(broken.name);
    const Report report = conformance::run(small_target(), runner_with(broken.fault));
    EXPECT_FALSE(report.passed());
    EXPECT_THAT(report.failed(), Contains(broken.check)) << report.to_string();
    const bool named = std::ranges::any_of(report.failures, [&](const auto& failure) {
      return failure.check == broken.check && failure.name == broken.failing;
    });
    EXPECT_TRUE(named) << report.to_string();
  }
}

TEST(ConformanceKit, Interpreter_Passes) {
  const Report report = conformance::run(Target::cpu(), [](const Program& program, auto inputs) {
    return interpret(program, inputs);
  });
  EXPECT_TRUE(report.passed()) << report.to_string();
  EXPECT_EQ(report.cases.size(), 9u) << report.to_string();  // every check has cases
}

TEST(ConformanceKit, CasesThatTheTargetRefuses_AreNotRun) {
  const auto runner = [](const Program& program, std::span<const Tensor> inputs) {
    for (const Node& node : program.nodes()) EXPECT_EQ(kind_of(node.op), OpKind::Add);
    return interpret(program, inputs);
  };
  const OpKind add[] = {OpKind::Add};
  const Report report = conformance::run(Target::of_ops("adder", add), runner);
  EXPECT_TRUE(report.passed()) << report.to_string();
  EXPECT_GT(report.refused.size(), 100u);
  EXPECT_THAT(report.refused, Contains("subtract_f32_matrix"));
  EXPECT_GT(report.cases.at(Check::op_case), 0);
  EXPECT_EQ(report.cases.count(Check::precision), 0u) << "it has no products";
}

// A registry whose handlers compute at once.
TEST(ConformanceKit, Registry_IsCheckedInOneCall) {
  HandlerRegistry<Tensor> registry;
  const auto handler = [](const HandlerContext& context,
                          std::span<const HandlerOperand<Tensor>> operands) {
    std::vector<const Tensor*> values;
    for (const auto& operand : operands) {
      values.push_back(operand.is_literal() ? nullptr : &operand.value());
    }
    return evaluate_node(context.node(), values);
  };
  registry.add<DotGeneral>(handler);
  registry.add<Subtract>(handler);
  const auto copy = [](const Tensor& tensor) { return tensor; };
  const Report right = conformance::run(registry, Target::matmul_only(), copy, copy);
  EXPECT_TRUE(right.passed()) << right.to_string();
  EXPECT_GT(right.cases.at(Check::op_case), 0);
  EXPECT_THAT(right.refused, Contains("add_f32_matrix"))
      << "the target takes it, nobody handles it";

  registry.add<Add>(
      [&](const HandlerContext& context, std::span<const HandlerOperand<Tensor>> operands) {
        Tensor result = handler(context, operands);
        return each(result, [](double x) { return x + 1; });
      });
  const Report wrong = conformance::run(registry, Target::matmul_only(), copy, copy);
  EXPECT_THAT(wrong.failed(), Contains(Check::op_case));
  for (const auto& failure : wrong.failures) EXPECT_THAT(failure.name, HasSubstr("add_"));
}

}  // namespace
}  // namespace mulgrad
