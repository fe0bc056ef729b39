#include "core/builder.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <utility>

#include "core/inference.h"

namespace mulgrad {
namespace {

bool is_name(std::string_view name) {
  const auto fits = [](unsigned char c, bool first) {
    if (c >= 128) return false;
    if (std::isalpha(c) != 0 || c == '_') return true;
    return !first && (std::isdigit(c) != 0 || c == '.' || c == '$' || c == '-');
  };
  if (name.empty()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!fits(static_cast<unsigned char>(name[i]), i == 0)) return false;
  }
  return true;
}

void check_name(std::string_view what, const std::string& name) {
  if (!is_name(name)) {
    throw Error(Category::invalid_name, "found the " + std::string(what) + " name \"" + name +
                                            "\", expected [A-Za-z_][A-Za-z0-9_.$-]*");
  }
}

// An entry's role and name.
template <class Entry>
bool is_new(HashIndex& names, std::span<const Entry> entries, const Entry& entry) {
  const std::uint64_t hash =
      hash_mix(std::hash<std::string_view>()(entry.name), static_cast<std::uint64_t>(entry.role));
  const auto is_same = [&](std::int64_t other) {
    const Entry& used = entries[static_cast<std::size_t>(other)];
    return used.role == entry.role && used.name == entry.name;
  };
  return names.find_or_insert(hash, std::ssize(entries), is_same) < 0;
}

}  // namespace

Builder::Builder(std::string name) {
  check_name("program", name);
  data_.name = std::move(name);
}

ValueId Builder::input(std::string name, Type type, InputRole role) {
  check_name("input", name);
  Input entry{std::move(name), std::move(type), role};
  if (!is_new<Input>(input_names_, data_.inputs, entry)) {
    throw Error(Category::invalid_name, "the input name \"" + entry.name + "\" is used twice");
  }
  data_.inputs.push_back(std::move(entry));
  return ValueId::input(std::ssize(data_.inputs) - 1);
}

ValueId Builder::add(Op op, std::span<const Operand> operands) {
  const ValueId id = ValueId::node(std::ssize(nodes_));
  try {
    types_.clear();
    for (const Operand& operand : operands) {
      if (operand.is_literal()) {
        types_.emplace_back(operand.literal());
      } else {
        types_.emplace_back(&type(operand.value()));
      }
    }
    op = canonicalize(std::move(op), types_);
    Type result = infer(op, types_);
    nodes_.push_back({std::move(op), {operands.begin(), operands.end()}, std::move(result)});
  } catch (const Error& error) {
    throw error.at_node(id.to_string() + " " + std::string(info(op).text_name));
  }
  data_.origins.push_back(origin_);
  return id;
}

namespace {

// Are the operands typed in `mine` as the others are in `theirs`?
bool are_typed_alike(const auto& mine, std::span<const Operand> operands, const auto& theirs,
                     std::span<const Operand> others) {
  return std::ranges::equal(operands, others, [&](const Operand& a, const Operand& b) {
    if (a.is_literal() || b.is_literal()) return a == b;
    return mine.type(a.value()) == theirs.type(b.value());
  });
}

}  // namespace

ValueId Builder::copy(const Program& source, std::int64_t node, std::span<const Operand> operands) {
  const Node& original = source.node(ValueId::node(node));
  if (!are_typed_alike(*this, operands, source, original.operands)) {
    return add(original.op, operands);
  }
  nodes_.push_back({original.op, {operands.begin(), operands.end()}, original.type});
  data_.origins.push_back(origin_);
  return ValueId::node(std::ssize(nodes_) - 1);
}

void Builder::keep(std::span<const KeptInput> inputs, const std::vector<bool>& nodes) {
  INTERNAL_CHECK(nodes.size() == nodes_.size());
  std::vector<Input> old = std::exchange(data_.inputs, {});
  input_names_ = HashIndex();
  std::vector<std::optional<ValueId>> input_places(old.size());
  std::vector<ValueId> node_places(nodes.size(), ValueId::node(0));
  for (const KeptInput& kept : inputs) {
    const auto index = static_cast<std::size_t>(kept.value.index());
    input_places[index] = input(kept.name, old[index].type, old[index].role);
  }
  const auto place = [&](ValueId value) {
    const auto index = static_cast<std::size_t>(value.index());
    INTERNAL_CHECK(value.is_node() ? nodes[index] : input_places[index].has_value());
    return value.is_node() ? node_places[index] : *input_places[index];
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    for (Operand& operand : nodes_[i].operands) {
      if (!operand.is_literal()) operand = place(operand.value());
    }
    if (count < i) nodes_[count] = std::move(nodes_[i]);
    data_.origins[count] = data_.origins[i];
    node_places[i] = ValueId::node(static_cast<std::int64_t>(count++));
  }
  nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(count), nodes_.end());
  data_.origins.resize(count);
  for (Output& output : data_.outputs) output.value = place(output.value);
}

void Builder::reserve(std::size_t nodes) {
  nodes_.reserve(nodes);
  data_.origins.reserve(nodes);
}

void Builder::output(std::string name, ValueId value, OutputRole role) {
  check_value(value);
  add_output(std::move(name), value, role);
}

void Builder::add_output(std::string name, ValueId value, OutputRole role) {
  check_name("output", name);
  Output entry{std::move(name), value, role};
  if (!is_new<Output>(output_names_, data_.outputs, entry)) {
    throw Error(Category::invalid_name, "the output name \"" + entry.name + "\" is used twice");
  }
  data_.outputs.push_back(std::move(entry));
}

void Builder::check_value(ValueId value) const {
  const std::int64_t limit = value.is_input() ? std::ssize(data_.inputs) : std::ssize(nodes_);
  if (value.index() >= limit) {
    throw Error(Category::missing_dependency,
                "found the value " + value.to_string() + ", which this program does not have");
  }
}

const Type& Builder::type(ValueId value) const {
  check_value(value);
  const auto index = static_cast<std::size_t>(value.index());
  return value.is_input() ? data_.inputs[index].type : nodes_[index].type;
}

std::string Builder::describe(ValueId value) const {
  check_value(value);
  const auto index = static_cast<std::size_t>(value.index());
  if (value.is_node()) {
    return value.to_string() + " " + std::string(nodes_[index].text_name());
  }
  return value.to_string() + " \"" + data_.inputs[index].name + "\"";
}

Program Builder::finish() {
  auto data = std::make_shared<Program::Data>(std::move(data_));
  data->nodes = std::make_shared<const std::vector<Node>>(std::exchange(nodes_, {}));
  data_ = {};
  data_.name = data->name;
  input_names_ = HashIndex();
  output_names_ = HashIndex();
  return Program(std::move(data));
}

Program Builder::with_outputs(const Program& program, std::span<const Output> added) {
  Builder checked(program.name());
  for (const std::span<const Output> outputs : {program.outputs(), added}) {
    for (const Output& output : outputs) {
      program.check_value(output.value);
      checked.add_output(output.name, output.value, output.role);
    }
  }
  auto data = std::make_shared<Program::Data>(*program.data_);
  data->outputs = std::move(checked.data_.outputs);
  return Program(std::move(data));
}

}  // namespace mulgrad
