#include "core/interpreter.h"

#include <optional>

#include "core/custom.h"
#include "core/eval.h"

namespace mulgrad {

Tensor eval::evaluate(const Custom& op, const Type& type, Operands operands) {
  std::vector<Tensor> values;
  for (const Tensor* operand : operands) values.push_back(*operand);
  Tensor result = op.definition->evaluate(op.attributes, values);
  if (!(result.type() == type)) {
    throw Error(Category::handler_contract_violation, "the evaluation of custom op \"" + op.name() +
                                                          "\" gave " + result.type().to_string() +
                                                          ", expected " + type.to_string());
  }
  return result;
}

Tensor evaluate_node(const Node& node, std::span<const Tensor* const> values) {
  INTERNAL_CHECK(values.size() == node.operands.size());
  return std::visit(
      [&]<class Struct>(const Struct& op) {
        if constexpr (eval::kIsElementwise<Struct>) {
          return eval::evaluate_elementwise(node, values);
        } else {
          return eval::evaluate(op, node.type, values);  // missing: does not compile
        }
      },
      node.op);
}

namespace {

void check_inputs(const Program& program, std::span<const Tensor> inputs) {
  const std::vector<std::string> unbound = symbols(program);
  if (!unbound.empty()) {
    throw Error(Category::unresolved_symbolic_shape,
                "found the symbol " + unbound[0] + ", expected a bound program");
  }
  if (inputs.size() != program.inputs().size()) {
    throw Error(Category::invalid_argument, "found " + std::to_string(inputs.size()) +
                                                " inputs, expected " +
                                                std::to_string(program.inputs().size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type& expected = program.inputs()[i].type;
    const Type found = inputs[i].type();
    if (found == expected) continue;
    throw Error(
        found.dtype == expected.dtype ? Category::shape_mismatch : Category::dtype_mismatch,
        "found a tensor of type " + found.to_string() + ", expected " + expected.to_string(),
        program.describe(ValueId::input(static_cast<std::int64_t>(i))));
  }
}

}  // namespace

std::vector<Tensor> interpret(const Program& program, std::span<const Tensor> inputs,
                              const NodeObserver& observer) {
  check_inputs(program, inputs);
  const Uses uses(program);
  std::vector<std::optional<Tensor>> results(program.nodes().size());
  std::vector<int> uses_left(program.nodes().size());
  const auto value = [&](ValueId id) -> const Tensor& {
    const auto index = static_cast<std::size_t>(id.index());
    return id.is_input() ? inputs[index] : *results[index];
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueId id = ValueId::node(static_cast<std::int64_t>(i));
    const Node& node = program.nodes()[i];
    std::vector<const Tensor*> operands;
    for (const Operand& operand : node.operands) {
      operands.push_back(operand.is_literal() ? nullptr : &value(operand.value()));
    }
    try {
      results[i] = evaluate_node(node, operands);
    } catch (const Error& error) {
      throw error.at_node(program.describe(id));
    }
    if (observer) observer(id, *results[i]);
    uses_left[i] = uses.count(id);
    if (uses_left[i] == 0) results[i].reset();
    for (const Operand& operand : node.operands) {
      if (operand.is_literal() || operand.value().is_input()) continue;
      const auto read = static_cast<std::size_t>(operand.value().index());
      if (--uses_left[read] == 0) results[read].reset();
    }
  }
  std::vector<Tensor> outputs;
  for (const Output& output : program.outputs()) outputs.push_back(value(output.value));
  return outputs;
}

}  // namespace mulgrad
