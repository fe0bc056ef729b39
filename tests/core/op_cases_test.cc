#include "tests/support/op_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/interpreter.h"
#include "core/text.h"

namespace mulgrad::testing {
namespace {

TEST(OpCases, Names_AreUnique) {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases()) {
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name;
  }
}

TEST(OpCases, EveryOpOfTheList_Occurs) {
  std::set<OpKind> found;
  for (const OpCase& op_case : op_cases()) found.insert(kind_of(op_case.op));
  for (const OpInfo& op : all_ops()) EXPECT_EQ(found.count(op.kind), 1u) << op.name;
}

// Builds the op on operands of one dtype; a dtype that inference refuses needs no case.
bool accepts(const OpCase& op_case, DType dtype) {
  OpCase changed = op_case;
  if (auto* op = std::get_if<DotGeneral>(&changed.op)) op->dtype = dtype;
  bool first = std::holds_alternative<Select>(op_case.op);  // the predicate stays i1
  for (auto& operand : changed.operands) {
    if (!first) {
      if (auto* literal = std::get_if<Literal>(&operand)) {
        if (dtype == DType::i1) return false;
        *literal = Literal::one(dtype);
      } else {
        std::get<CaseOperand>(operand).type.dtype = dtype;
      }
    }
    first = false;
  }
  try {
    program_of(changed);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(OpCases, EveryOpAndDtype_OccursWhereInferenceAllowsIt) {
  std::map<OpKind, std::set<DType>> found;
  std::map<OpKind, std::set<DType>> allowed;
  for (const OpCase& op_case : op_cases()) {
    const OpKind kind = kind_of(op_case.op);
    if (op_case.operands.empty()) {
      found[kind].insert(program_of(op_case).nodes()[0].type.dtype);
      continue;
    }
    if (!std::holds_alternative<CaseOperand>(op_case.operands.back())) continue;
    found[kind].insert(std::get<CaseOperand>(op_case.operands.back()).type.dtype);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i32, DType::i1}) {
      if (accepts(op_case, dtype)) allowed[kind].insert(dtype);
    }
  }
  for (const auto& [kind, dtypes] : allowed) {
    for (const DType dtype : dtypes) {
      EXPECT_EQ(found[kind].count(dtype), 1u) << info(kind).name << " " << to_string(dtype);
    }
  }
}

TEST(OpCases, EveryCase_RunsAndHasTheInferredType) {
  for (const OpCase& op_case : op_cases()) {
    const Program program = program_of(op_case);
    const std::vector<Tensor> outputs = interpret(program, inputs_of(op_case));
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].type(), program.nodes()[0].type) << op_case.name;
  }
}

TEST(OpCases, EveryCase_SurvivesPrintAndParse) {
  ParseOptions options;
  options.customs = case_customs();
  for (const OpCase& op_case : op_cases()) {
    const Program program = program_of(op_case);
    const std::string text = print(program);
    try {
      EXPECT_EQ(parse(text, options), program) << op_case.name << "\n" << text;
    } catch (const Error& error) {
      ADD_FAILURE() << op_case.name << ": " << error.what() << "\n" << text;
    }
  }
}

TEST(OpCases, DistinctOperands_NeverMeet) {
  for (const OpCase& op_case : op_cases()) {
    std::set<double> seen;
    for (std::size_t i = 0, input = 0; i < op_case.operands.size(); ++i) {
      const auto* operand = std::get_if<CaseOperand>(&op_case.operands[i]);
      if (operand == nullptr) continue;
      const Tensor value = inputs_of(op_case, 7)[input++];
      if (operand->values != Values::distinct) continue;
      for (const double element : value.to_doubles()) {
        EXPECT_TRUE(seen.insert(element).second) << op_case.name;
      }
    }
  }
}

TEST(OpCases, Inputs_DependOnTheSeedAlone) {
  int differing = 0;
  for (const OpCase& op_case : op_cases()) {
    EXPECT_EQ(inputs_of(op_case, 3), inputs_of(op_case, 3)) << op_case.name;
    if (inputs_of(op_case, 3) != inputs_of(op_case, 4)) ++differing;
  }
  EXPECT_GT(differing, 300);
}

}  // namespace
}  // namespace mulgrad::testing
