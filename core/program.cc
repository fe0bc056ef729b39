#include "core/program.h"

#include <algorithm>
#include <set>

#include "core/builder.h"
#include "core/inference.h"

namespace mulgrad {
namespace {

void collect_types(const Program& program, const Node& node, std::vector<OperandType>& types) {
  types.clear();
  for (const Operand& operand : node.operands) {
    if (operand.is_literal()) {
      types.emplace_back(operand.literal());
    } else {
      types.emplace_back(&program.type(operand.value()));
    }
  }
}

void check_reference(const Program& program, ValueId value, std::int64_t nodes_before,
                     const auto& reader) {
  const std::int64_t limit = value.is_input() ? std::ssize(program.inputs()) : nodes_before;
  if (value.index() < limit) return;
  throw Error(Category::missing_dependency,
              "found the operand " + value.to_string() + ", expected a value made before it",
              reader());
}

}  // namespace

std::string ValueId::to_string() const {
  return (is_input() ? "%arg" : "%") + std::to_string(index());
}

bool Operand::operator==(const Operand& other) const = default;

Program::Program() {
  auto data = std::make_shared<Data>();
  data->nodes = std::make_shared<const std::vector<Node>>();
  data_ = std::move(data);
}

void Program::check_value(ValueId value) const {
  const std::int64_t limit = value.is_input() ? std::ssize(inputs()) : std::ssize(nodes());
  if (value.index() >= limit) {
    throw Error(Category::missing_dependency,
                "found the value " + value.to_string() + ", which this program does not have");
  }
}

const Type& Program::type(ValueId value) const {
  check_value(value);
  const auto index = static_cast<std::size_t>(value.index());
  return value.is_input() ? inputs()[index].type : nodes()[index].type;
}

std::string Program::describe(ValueId value) const {
  check_value(value);
  if (value.is_node()) return value.to_string() + " " + std::string(node(value).text_name());
  return value.to_string() + " \"" + inputs()[static_cast<std::size_t>(value.index())].name + "\"";
}

std::int64_t Program::find_input(std::string_view name, InputRole role) const {
  for (std::size_t i = 0; i < inputs().size(); ++i) {
    if (inputs()[i].role == role && inputs()[i].name == name) return static_cast<std::int64_t>(i);
  }
  return -1;
}

std::int64_t Program::find_output(std::string_view name, OutputRole role) const {
  for (std::size_t i = 0; i < outputs().size(); ++i) {
    if (outputs()[i].role == role && outputs()[i].name == name) return static_cast<std::int64_t>(i);
  }
  return -1;
}

bool Program::operator==(const Program& other) const {
  return data_ == other.data_ ||
         (name() == other.name() && data_->inputs == other.data_->inputs &&
          (data_->nodes == other.data_->nodes || *data_->nodes == *other.data_->nodes) &&
          data_->outputs == other.data_->outputs);
}

std::uint64_t Program::hash() const {
  const auto mix_text = [](std::uint64_t hash, const std::string& text) {
    return hash_bytes(hash, std::as_bytes(std::span(text)));
  };
  const auto mix_value = [](std::uint64_t hash, ValueId value) {
    return hash_mix(hash,
                    static_cast<std::uint64_t>(value.index()) * 2 + (value.is_input() ? 1 : 0));
  };
  std::uint64_t hash = mix_text(0, name());
  for (const Input& input : inputs()) {
    hash = hash_type(mix_text(hash_mix(hash, static_cast<std::uint64_t>(input.role)), input.name),
                     input.type);
  }
  for (const Node& node : nodes()) {
    hash = hash_type(hash_mix(hash, hash_op(node.op)), node.type);
    for (const Operand& operand : node.operands) {
      if (operand.is_literal()) {
        hash = hash_mix(hash_mix(hash, static_cast<std::uint64_t>(operand.literal().dtype)),
                        operand.literal().bits);
      } else {
        hash = mix_value(hash, operand.value());
      }
    }
  }
  for (const Output& output : outputs()) {
    hash = mix_value(mix_text(hash_mix(hash, static_cast<std::uint64_t>(output.role)), output.name),
                     output.value);
  }
  return hash;
}

Program Program::with_fresh_origins() const {
  auto data = std::make_shared<Data>(*data_);
  for (std::size_t i = 0; i < data->origins.size(); ++i) {
    data->origins[i] = static_cast<Origin>(i);
  }
  return Program(std::move(data));
}

Uses::Uses(const Program& program)
    : inputs_(program.inputs().size()), nodes_(program.nodes().size()) {
  const auto add = [&](ValueId value) { ++(value.is_input() ? inputs_ : nodes_)[at(value)]; };
  for (const Node& node : program.nodes()) {
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal()) add(operand.value());
    }
  }
  for (const Output& output : program.outputs()) add(output.value);
}

std::vector<bool> reachable_nodes(const Program& program) {
  std::vector<ValueId> roots;
  for (const Output& output : program.outputs()) roots.push_back(output.value);
  return reachable_nodes(program.nodes(), roots);
}

std::vector<bool> reachable_nodes(std::span<const Node> nodes, std::span<const ValueId> roots) {
  std::vector<bool> reached(nodes.size());
  const auto mark = [&](ValueId value) {
    if (value.is_node()) reached[static_cast<std::size_t>(value.index())] = true;
  };
  for (const ValueId root : roots) mark(root);
  // Operands come before their node, so one walk from the end sees every reader first.
  for (std::size_t i = reached.size(); i-- > 0;) {
    if (!reached[i]) continue;
    for (const Operand& operand : nodes[i].operands) {
      if (!operand.is_literal()) mark(operand.value());
    }
  }
  return reached;
}

void verify(const Program& program) {
  std::vector<OperandType> types;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const ValueId id = ValueId::node(i);
    const Node& node = program.node(id);
    const auto label = [&] { return program.describe(id); };
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal()) check_reference(program, operand.value(), i, label);
    }
    Type expected;
    try {
      collect_types(program, node, types);
      expected = infer(node.op, types);
    } catch (const Error& error) {
      throw error.at_node(label());
    }
    if (!(expected == node.type)) {
      throw Error(
          expected.dtype == node.type.dtype ? Category::shape_mismatch : Category::dtype_mismatch,
          "found the type " + node.type.to_string() + ", expected " + expected.to_string(),
          label());
    }
  }
  std::set<std::pair<InputRole, std::string>> input_names;
  for (const Input& input : program.inputs()) {
    if (!input_names.emplace(input.role, input.name).second) {
      throw Error(Category::invalid_name, "the input name \"" + input.name + "\" is used twice");
    }
  }
  std::set<std::pair<OutputRole, std::string>> output_names;
  for (const Output& output : program.outputs()) {
    check_reference(program, output.value, std::ssize(program.nodes()),
                    [&] { return "output " + output.name; });
    if (!output_names.emplace(output.role, output.name).second) {
      throw Error(Category::invalid_name, "the output name \"" + output.name + "\" is used twice");
    }
  }
}

std::vector<std::string> symbols(const Program& program) {
  std::set<std::string> found;
  for (const Input& input : program.inputs()) {
    for (const Dim& dim : input.type.shape)
      found.insert(dim.symbols().begin(), dim.symbols().end());
  }
  for (const Node& node : program.nodes()) {
    for (const Dim& dim : node.type.shape) found.insert(dim.symbols().begin(), dim.symbols().end());
  }
  return {found.begin(), found.end()};
}

Program bind(const Program& program, const Bindings& bindings) {
  const std::vector<std::string> used = symbols(program);
  for (const std::string& name : used) {
    if (bindings.count(name) == 0) {
      throw Error(Category::invalid_argument, "the symbol " + name + " has no binding");
    }
  }
  for (const auto& [name, size] : bindings) {
    if (std::find(used.begin(), used.end(), name) == used.end()) {
      throw Error(Category::invalid_argument,
                  "found a binding for " + name + ", which the program does not use");
    }
    if (size < 0) {
      throw Error(Category::invalid_argument, "found the size " + std::to_string(size) + " for " +
                                                  name + ", expected a size >= 0");
    }
  }
  if (used.empty()) return program;
  Builder builder(program.name());
  for (const Input& input : program.inputs()) {
    builder.input(input.name, {input.type.dtype, input.type.shape.bind(bindings)}, input.role);
  }
  // Binding keeps every node, so value ids stay as they are.
  for (std::size_t i = 0; i < program.nodes().size(); ++i) {
    const Node& node = program.nodes()[i];
    builder.set_origin(program.origins()[i]);
    builder.add(bind(node.op, bindings), node.operands);
  }
  for (const Output& output : program.outputs()) {
    builder.output(output.name, output.value, output.role);
  }
  return builder.finish();
}

}  // namespace mulgrad
