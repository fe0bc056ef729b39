#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/custom.h"
#include "core/interpreter.h"
#include "core/rewrite/rewriter.h"
#include "lowering/cleaning.h"

namespace mulgrad {
namespace {

// A folded tensor may be this large whatever it was made of, and may take this many terms to make.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 16;
constexpr double kMaxTerms = 1 << 22;

using Known = std::shared_ptr<const Op>;  // a Fill or a Constant; null: not known

bool is_fill(const Known& value) { return std::holds_alternative<Fill>(*value); }

std::int64_t elements(const Type& type) { return type.shape.elements().size(); }

bool is_static(const Type& type) { return type.shape.is_static(); }

Type type_of(const Op& op) {
  if (const auto* fill = std::get_if<Fill>(&op)) return {fill->value.dtype, fill->shape};
  return std::get<Constant>(op).value->type();
}

// The tensor of a known value.
std::shared_ptr<const Tensor> tensor_of(const Op& op) {
  if (const auto* constant = std::get_if<Constant>(&op)) return constant->value;
  const auto& fill = std::get<Fill>(op);
  return std::make_shared<const Tensor>(Tensor::filled(fill.value, fill.shape.sizes()));
}

// Does every element of the result depend on the elements of fills in the same way?
bool keeps_fills(const Op& op) {
  if (is_elementwise(op)) return true;
  return std::holds_alternative<BroadcastInDim>(op) || std::holds_alternative<Reshape>(op) ||
         std::holds_alternative<Transpose>(op) || std::holds_alternative<Slice>(op);
}

// The op on single elements.
Literal element_of_fills(const Node& node, const std::vector<Known>& operands) {
  std::vector<Tensor> tensors;
  std::optional<Literal> first;
  for (const Known& operand : operands) {
    if (!operand) {
      tensors.emplace_back();
      continue;
    }
    const Literal& value = std::get<Fill>(*operand).value;
    if (!first) first = value;
    tensors.push_back(Tensor::filled(value, {}));
  }
  if (!is_elementwise(node.op)) return *first;
  const Node single{node.op, node.operands, {node.type.dtype, {}}};
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return evaluate_node(single, pointers).element(0);
}

double terms(const Node& node, const std::vector<Known>& operands) {
  double result = static_cast<double>(elements(node.type));
  if (const auto* product = std::get_if<DotGeneral>(&node.op)) {
    const Shape shape = type_of(*operands[0]).shape;
    for (const std::int64_t axis : product->lhs_contracting) {
      result *= static_cast<double>(shape[axis].size());
    }
    return result;
  }
  for (const Known& operand : operands) {
    if (operand) result += static_cast<double>(elements(type_of(*operand)));
  }
  return result;
}

// Is the evaluated result worth its size?
bool is_worth_it(const Node& node, const std::vector<Known>& operands) {
  if (!is_static(node.type)) return false;
  std::int64_t largest = kMaxElements;
  for (const Known& operand : operands) {
    if (!operand) continue;
    const Type type = type_of(*operand);
    if (!is_static(type)) return false;
    if (!is_fill(operand)) largest = std::max(largest, elements(type));
  }
  return elements(node.type) <= largest && terms(node, operands) <= kMaxTerms;
}

class ConstantFolder {
 public:
  explicit ConstantFolder(const Program& program) : program_(program) {}

  std::vector<Replacement> run() {
    std::vector<Replacement> replacements;
    for (std::int64_t i = 0; i < std::ssize(program_.nodes()); ++i) {
      const Node& node = program_.nodes()[static_cast<std::size_t>(i)];
      const bool is_source = info(node.op).op_class == OpClass::creation;
      Known value = is_source ? source(node) : fold(node);
      // A target may have i1 between ops and not as a constant, so an i1 is known but not written.
      if (value && !is_source && node.type.dtype != DType::i1) {
        replacements.push_back({i, {}, {}, [value](Rewriter& rewriter) {
                                  return Var(rewriter.builder(),
                                             rewriter.builder().add(*value, {}));
                                }});
      }
      known_.push_back(std::move(value));
    }
    return replacements;
  }

 private:
  static Known source(const Node& node) {
    if (!std::holds_alternative<Iota>(node.op)) return std::make_shared<const Op>(node.op);
    if (!is_worth_it(node, {})) return nullptr;
    return canonical(evaluate_node(node, {}));
  }

  Known fold(const Node& node) const {
    std::vector<Known> operands;
    bool all_fills = true;
    for (const Operand& operand : node.operands) {
      operands.emplace_back();
      if (operand.is_literal()) continue;
      if (operand.value().is_input()) return nullptr;
      operands.back() = known_[static_cast<std::size_t>(operand.value().index())];
      if (!operands.back()) return nullptr;
      all_fills = all_fills && is_fill(operands.back());
    }
    if (std::holds_alternative<Custom>(node.op)) return nullptr;
    if (all_fills && keeps_fills(node.op)) {
      return std::make_shared<const Op>(Fill{element_of_fills(node, operands), node.type.shape});
    }
    if (!is_worth_it(node, operands)) return nullptr;
    std::vector<std::shared_ptr<const Tensor>> tensors;
    std::vector<const Tensor*> pointers;
    for (const Known& operand : operands) {
      tensors.push_back(operand ? tensor_of(*operand) : nullptr);
      pointers.push_back(tensors.back().get());
    }
    return canonical(evaluate_node(node, pointers));
  }

  // As the builder stores it.
  static Known canonical(Tensor value) {
    Builder builder;
    builder.add(Constant{std::make_shared<const Tensor>(std::move(value))}, {});
    return std::make_shared<const Op>(builder.nodes()[0].op);
  }

  const Program& program_;
  std::vector<Known> known_;  // per node so far
};

}  // namespace

Pass fold_constants() {
  const std::string name = "fold_constants";
  return {name,
          {Slot::forward, Slot::derivative, Slot::update},
          {},
          [name](const Program& program) {
            return apply(program, name, ConstantFolder(program).run());
          },
          {},
          {},
          {}};
}

}  // namespace mulgrad
