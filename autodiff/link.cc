#include "autodiff/link.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/derive.h"

namespace mulgrad {

std::vector<ValueId> append(Builder& builder, const Program& program,
                            std::span<const ValueId> inputs) {
  if (inputs.size() != program.inputs().size()) {
    throw Error(Category::invalid_argument,
                "found " + std::to_string(inputs.size()) + " inputs for the program \"" +
                    program.name() + "\", expected " + std::to_string(program.inputs().size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type& found = builder.type(inputs[i]);
    const Type& expected = program.inputs()[i].type;
    if (found == expected) continue;
    throw Error(found.dtype == expected.dtype ? Category::shape_mismatch : Category::dtype_mismatch,
                "found " + found.to_string() + " for the input \"" + program.inputs()[i].name +
                    "\" of the program \"" + program.name() + "\", expected " +
                    expected.to_string());
  }
  std::vector<ValueId> nodes(program.nodes().size(), ValueId::node(0));
  const auto at = [&](ValueId value) {
    const auto index = static_cast<std::size_t>(value.index());
    return value.is_input() ? inputs[index] : nodes[index];
  };
  const std::vector<bool> reached = reachable_nodes(program);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!reached[i]) continue;
    const Node& node = program.nodes()[i];
    operands.clear();
    for (const Operand& operand : node.operands) {
      operands.push_back(operand.is_literal() ? operand : Operand(at(operand.value())));
    }
    builder.set_origin(program.origins()[i]);
    nodes[i] = builder.add(node.op, operands);
  }
  std::vector<ValueId> results;
  for (const Output& output : program.outputs()) results.push_back(at(output.value));
  return results;
}

Program join(const Derivative& derivative) {
  const Program& forward = derivative.forward;
  Builder builder(forward.name());
  std::unordered_set<std::string> input_names;
  std::vector<ValueId> inputs;
  for (const Input& input : forward.inputs()) {
    input_names.insert(input.name);
    inputs.push_back(builder.input(input.name, input.type, input.role));
  }
  const auto fresh = [](std::string name, const std::string& prefix,
                        std::unordered_set<std::string>& used) {
    while (!used.insert(name).second) name = prefix + name;
    return name;
  };

  // Seeds are declared before any node is made, as all inputs.
  std::vector<ValueId> links;
  for (const Input& input : derivative.derivative.inputs()) {
    if (input.role == InputRole::capture) continue;
    links.push_back(builder.input(fresh("ct." + input.name, "ct.", input_names), input.type));
  }
  const std::vector<ValueId> values = append(builder, forward, inputs);
  std::unordered_set<std::string> output_names;
  std::unordered_map<std::string, ValueId> captures;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Output& output = forward.outputs()[i];
    if (output.role == OutputRole::capture) {
      captures.emplace(output.name, values[i]);
    } else {
      output_names.insert(output.name);
      builder.output(output.name, values[i]);
    }
  }

  // One value per input of the derivative program, in its order.
  std::size_t next_seed = 0;
  std::vector<ValueId> arguments;
  for (const Input& input : derivative.derivative.inputs()) {
    if (input.role != InputRole::capture) {
      arguments.push_back(links[next_seed++]);
      continue;
    }
    const auto found = captures.find(input.name);
    if (found == captures.end()) {
      throw Error(Category::malformed_derivative_ir,
                  "found the capture \"" + input.name + "\", which the forward program lacks");
    }
    arguments.push_back(found->second);
  }
  const std::vector<ValueId> gradients = append(builder, derivative.derivative, arguments);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string& name = derivative.derivative.outputs()[i].name;
    builder.output(fresh(name, "grad.", output_names), gradients[i]);
  }
  return builder.finish();
}

}  // namespace mulgrad
