#include <algorithm>
#include <concepts>
#include <utility>

#include "core/lexer.h"
#include "core/text.h"

namespace mulgrad {
namespace {

// Constants of more elements are printed as their bytes.
constexpr std::int64_t kLongestList = 100;

std::string list(std::span<const std::int64_t> items) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(items[i]);
  }
  return text + "]";
}

std::string nested_list(const Tensor& tensor) {
  // blocks[d]: how many elements one entry of axis d holds.
  std::vector<std::int64_t> blocks(tensor.sizes().begin(), tensor.sizes().end());
  std::int64_t block = 1;
  for (std::size_t axis = blocks.size(); axis-- > 0;) block *= std::exchange(blocks[axis], block);
  std::string text;
  const auto brackets = [&](std::int64_t index, char bracket) {
    for (std::size_t axis = 0; axis < blocks.size(); ++axis) {
      if (index % (blocks[axis] * tensor.sizes()[axis]) == 0) text.push_back(bracket);
    }
  };
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (i > 0) text += ", ";
    brackets(i, '[');
    text += tensor.element(i).to_string();
    brackets(i + 1, ']');
  }
  return text;
}

std::string blob(const Tensor& tensor) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "\"0x";
  for (const std::byte byte : tensor.bytes()) {
    const auto value = std::to_integer<unsigned>(byte);
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text + "\"";
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string run() {
    out_ = "module " + symbol_text(program_.name()) + " attributes {mulgrad.form = \"native\"} {\n";
    out_ += "  func.func @main(";
    for (std::int64_t i = 0; i < std::ssize(program_.inputs()); ++i) {
      const Input& input = program_.inputs()[static_cast<std::size_t>(i)];
      if (i > 0) out_ += ", ";
      out_ += ValueId::input(i).to_string() + ": " + input.type.to_string() + " {mulgrad." +
              std::string(key(input.role)) + " = " + quoted(input.name) + "}";
    }
    out_ += ")";
    if (!program_.outputs().empty()) {
      out_ += " -> (";
      separated(program_.outputs(), [&](const Output& output) {
        out_ += program_.type(output.value).to_string() + " {mulgrad." +
                (output.role == OutputRole::output ? "name = " : "capture = ") +
                quoted(output.name) + "}";
      });
      out_ += ")";
    }
    out_ += " {\n";
    for (std::size_t i = 0; i < program_.nodes().size(); ++i) {
      const Node& node = program_.nodes()[i];
      out_ += "    %" + std::to_string(i) + " = ";
      out_ += node.text_name();
      std::visit([&](const auto& op) { body(op, node); }, node.op);
      out_ += "\n";
    }
    out_ += "    return";
    if (!program_.outputs().empty()) {
      out_ += " ";
      separated(program_.outputs(),
                [&](const Output& output) { out_ += output.value.to_string(); });
      out_ += " : ";
      separated(program_.outputs(),
                [&](const Output& output) { out_ += program_.type(output.value).to_string(); });
    }
    out_ += "\n  }\n}\n";
    return std::move(out_);
  }

 private:
  static std::string_view key(InputRole role) {
    return role == InputRole::input ? "name" : role == InputRole::seed ? "seed" : "capture";
  }

  void separated(const auto& items, const auto& each) {
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ", ";
      first = false;
      each(item);
    }
  }

  void operands(const Node& node) {
    separated(node.operands, [&](const Operand& operand) {
      out_ += operand.is_literal() ? operand.literal().to_string() : operand.value().to_string();
    });
  }

  const Type& type(const Operand& operand) const { return program_.type(operand.value()); }

  bool is_typed(const Operand& operand, const Type& expected) const {
    return operand.is_literal() || type(operand) == expected;
  }

  void long_type(const Node& node) {
    std::vector<const Type*> types;
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal()) types.push_back(&type(operand));
    }
    out_ += " : (";
    separated(types, [&](const Type* operand) { out_ += operand->to_string(); });
    out_ += ") -> " + node.type.to_string();
  }

  void elementwise_type(const Node& node) {
    const bool all = std::all_of(node.operands.begin(), node.operands.end(),
                                 [&](const Operand& x) { return is_typed(x, node.type); });
    if (!all) return long_type(node);
    out_ += " : " + node.type.to_string();
  }

  void result_type(const Node& node) { out_ += " : " + node.type.to_string(); }

  // What follows the op's name: each ends with the type.
  template <class T>
  void body(const T& op, const Node& node) {
    static_assert(std::same_as<decltype(op.fields()), std::tuple<>>,
                  "an op with attributes prints them in a body() of its own");
    out_ += " ";
    operands(node);
    elementwise_type(node);
  }

  void body(const Convert&, const Node& node) {
    out_ += " ";
    operands(node);
    elementwise_type(node);  // the dtype is that of the result
  }

  void body(const Erf&, const Node& node) {
    out_ += " ";
    operands(node);
    out_ += " : " + type(node.operands[0]).to_string() + " -> " + node.type.to_string();
  }

  void body(const Compare& op, const Node& node) {
    out_ += " ";
    out_ += to_string(op.direction);
    out_ += ", ";
    operands(node);
    const Operand& typed = node.operands[node.operands[0].is_literal() ? 1 : 0];
    out_ += ", ";
    out_ += comparison_type(type(typed).dtype);
    long_type(node);
  }

  void body(const Select&, const Node& node) {
    out_ += " ";
    operands(node);
    const Type& predicate = type(node.operands[0]);
    const bool agree = (predicate.rank() == 0 || predicate.shape == node.type.shape) &&
                       is_typed(node.operands[1], node.type) &&
                       is_typed(node.operands[2], node.type);
    if (!agree) return long_type(node);
    out_ += " : " + predicate.to_string() + ", " + node.type.to_string();
  }

  void body(const Fill& op, const Node& node) {
    out_ += " dense<" + op.value.to_string() + ">";
    result_type(node);
  }

  void body(const Constant& op, const Node& node) {
    const Tensor& value = *op.value;
    out_ += " dense<" + (value.elements() > kLongestList ? blob(value) : nested_list(value)) + ">";
    result_type(node);
  }

  void body(const Iota& op, const Node& node) {
    out_ += " dim = " + std::to_string(op.dimension);
    result_type(node);
  }

  void with_attributes(const Node& node, const std::string& attributes) {
    out_ += " ";
    operands(node);
    out_ += attributes;
    long_type(node);
  }

  void body(const BroadcastInDim& op, const Node& node) {
    with_attributes(node, ", dims = " + list(op.dims));
  }
  void body(const Reshape&, const Node& node) { with_attributes(node, ""); }
  void body(const Transpose& op, const Node& node) {
    with_attributes(node, ", dims = " + list(op.permutation));
  }
  void body(const Slice& op, const Node& node) {
    std::string ranges = " [";
    for (std::size_t i = 0; i < op.start.size(); ++i) {
      if (i > 0) ranges += ", ";
      ranges += std::to_string(op.start[i]) + ":" + op.limit[i].to_string();
      if (op.stride[i] != 1) ranges += ":" + std::to_string(op.stride[i]);
    }
    with_attributes(node, ranges + "]");
  }
  void body(const Concatenate& op, const Node& node) {
    with_attributes(node, ", dim = " + std::to_string(op.dimension));
  }
  void body(const Pad& op, const Node& node) {
    with_attributes(node, ", low = " + list(op.low) + ", high = " + list(op.high) +
                              ", interior = " + list(op.interior));
  }

  void body(const Reduce& op, const Node& node) {
    out_ += "(";
    operands(node);
    out_ += ") applies ";
    out_ += to_string(op.kind);
    out_ += " across dimensions = " + list(op.axes);
    long_type(node);
  }
  void body(const Mean& op, const Node& node) {
    with_attributes(
        node, " across dimensions = " + list(op.axes) + (op.keepdims ? " {keepdims = true}" : ""));
  }
  void body(const DotGeneral& op, const Node& node) {
    std::string attributes;
    if (!op.lhs_batch.empty()) {
      attributes += ", batching_dims = " + list(op.lhs_batch) + " x " + list(op.rhs_batch);
    }
    attributes +=
        ", contracting_dims = " + list(op.lhs_contracting) + " x " + list(op.rhs_contracting);
    with_attributes(node, attributes);
  }

  void body(const Custom& op, const Node& node) {
    out_ += " " + symbol_text(op.name()) + "(";
    operands(node);
    out_ += ")";
    if (!op.attributes.empty()) out_ += " {attributes = " + quoted(op.attributes) + "}";
    long_type(node);
  }

  const Program& program_;
  std::string out_;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace mulgrad
