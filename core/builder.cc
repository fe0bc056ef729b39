#include "core/builder.h"

#include <cctype>
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

}  // namespace

Builder::Builder(std::string name) {
  check_name("program", name);
  data_.name = std::move(name);
}

ValueId Builder::input(std::string name, Type type, InputRole role) {
  check_name("input", name);
  if (!names_.insert("i" + std::to_string(static_cast<int>(role)) + name).second) {
    throw Error(Category::invalid_name, "the input name \"" + name + "\" is used twice");
  }
  data_.inputs.push_back({std::move(name), std::move(type), role});
  return ValueId::input(std::ssize(data_.inputs) - 1);
}

ValueId Builder::add(Op op, std::span<const Operand> operands) {
  const ValueId id = ValueId::node(std::ssize(data_.nodes));
  try {
    std::vector<OperandType> types;
    types.reserve(operands.size());
    for (const Operand& operand : operands) {
      if (operand.is_literal()) {
        types.emplace_back(operand.literal());
      } else {
        check_value(operand.value());
        types.emplace_back(&type(operand.value()));
      }
    }
    op = canonicalize(std::move(op), types);
    Type result = infer(op, types);
    data_.nodes.push_back({std::move(op), {operands.begin(), operands.end()}, std::move(result)});
  } catch (const Error& error) {
    throw error.at_node(id.to_string() + " " + std::string(info(op).text_name));
  }
  data_.origins.push_back(origin_);
  return id;
}

void Builder::output(std::string name, ValueId value, OutputRole role) {
  check_name("output", name);
  check_value(value);
  if (!names_.insert("o" + std::to_string(static_cast<int>(role)) + name).second) {
    throw Error(Category::invalid_name, "the output name \"" + name + "\" is used twice");
  }
  data_.outputs.push_back({std::move(name), value, role});
}

void Builder::check_value(ValueId value) const {
  const std::int64_t limit = value.is_input() ? std::ssize(data_.inputs) : std::ssize(data_.nodes);
  if (value.index() >= limit) {
    throw Error(Category::missing_dependency,
                "found the value " + value.to_string() + ", which this program does not have");
  }
}

const Type& Builder::type(ValueId value) const {
  check_value(value);
  const auto index = static_cast<std::size_t>(value.index());
  return value.is_input() ? data_.inputs[index].type : data_.nodes[index].type;
}

std::string Builder::describe(ValueId value) const {
  check_value(value);
  const auto index = static_cast<std::size_t>(value.index());
  if (value.is_node()) {
    return value.to_string() + " " + std::string(data_.nodes[index].text_name());
  }
  return value.to_string() + " \"" + data_.inputs[index].name + "\"";
}

Program Builder::finish() {
  auto data = std::make_shared<Program::Data>(std::move(data_));
  data_ = {};
  data_.name = data->name;
  names_.clear();
  return Program(std::move(data));
}

}  // namespace mulgrad
