// Every op of the op-case table: first and second derivatives against finite differences.
#include <gtest/gtest.h>

#include "autodiff/derive.h"
#include "autodiff/rules.h"
#include "core/text.h"
#include "tests/support/gradient_check.h"
#include "tests/support/op_cases.h"

namespace mulgrad::testing {
namespace {

bool all_floats_are_f64(const OpCase& op_case, const Program& program) {
  for (const Input& input : program.inputs()) {
    if (is_float(input.type.dtype) && input.type.dtype != DType::f64) return false;
  }
  return op_case.order > 0 && program.nodes()[0].type.dtype == DType::f64;
}

TEST(OpGradients, EveryCase_AgreesWithFiniteDifferences) {
  int checked = 0;
  for (const OpCase& op_case : op_cases()) {
    const Program program = program_of(op_case);
    if (!all_floats_are_f64(op_case, program)) continue;
    SCOPED_TRACE(op_case.name);
    EXPECT_TRUE(check_gradients(program, inputs_of(op_case), op_case.order));
    ++checked;
  }
  EXPECT_GT(checked, 150);
}

TEST(OpGradients, EveryOpWithARule_HasACheckedCase) {
  for (const OpInfo& op : all_ops()) {
    bool has_rule = false;
    bool checked = false;
    for (const OpCase& op_case : op_cases()) {
      if (kind_of(op_case.op) != op.kind) continue;
      has_rule = !has_zero_derivative(op_case.op);
      checked = checked || all_floats_are_f64(op_case, program_of(op_case));
    }
    EXPECT_EQ(has_rule, checked) << op.name;
  }
}

TEST(OpGradients, EveryFloatCase_DerivesToProgramsThatVerifyAndRoundTrip) {
  for (const OpCase& op_case : op_cases()) {
    if (op_case.order == 0) continue;
    SCOPED_TRACE(op_case.name);
    const Program program = program_of(op_case);
    std::vector<ValueId> wrt;
    for (std::int64_t i = 0; i < std::ssize(program.inputs()); ++i) {
      const ValueId input = ValueId::input(i);
      if (is_float(program.type(input).dtype)) wrt.push_back(input);
    }
    const std::int64_t output = 0;
    const Derivative derivative = derive(program, {&output, 1}, wrt);
    for (const Program& result : {derivative.forward, derivative.derivative, join(derivative)}) {
      EXPECT_NO_THROW(verify(result));
      EXPECT_EQ(parse(print(result), {.customs = case_customs()}), result) << print(result);
    }
    // Nothing dead: every node is reached and every capture is read.
    const std::vector<bool> reached = reachable_nodes(derivative.derivative);
    EXPECT_EQ(std::count(reached.begin(), reached.end(), false), 0);
    const Uses uses(derivative.derivative);
    for (std::int64_t i = 1; i < std::ssize(derivative.derivative.inputs()); ++i) {
      EXPECT_GT(uses.count(ValueId::input(i)), 0);
    }
  }
}

}  // namespace
}  // namespace mulgrad::testing
