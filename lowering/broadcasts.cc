// materialize_broadcasts and elide_broadcasts.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/custom.h"
#include "core/inference.h"
#include "core/rewrite/rewriter.h"
#include "lowering/legalize.h"

namespace mulgrad {
namespace {

const std::vector<Slot> kEverySlot{Slot::forward, Slot::derivative, Slot::update};

// The broadcast that makes the operand, or null.
const Node* broadcast_of(const Program& program, const Operand& operand) {
  if (operand.is_literal() || operand.value().is_input()) return nullptr;
  const Node& node = program.node(operand.value());
  return std::holds_alternative<BroadcastInDim>(node.op) ? &node : nullptr;
}

PassResult materialize(const Program& program, const std::string& name) {
  std::vector<Replacement> replacements;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[static_cast<std::size_t>(i)];
    const auto expands = [&](const Operand& operand) {
      return !operand.is_literal() && program.type(operand.value()).shape != node.type.shape;
    };
    if (!is_elementwise(node.op) ||
        std::none_of(node.operands.begin(), node.operands.end(), expands)) {
      continue;
    }
    replacements.push_back(
        {i, {}, {}, [&node, expands](Rewriter& rewriter) {
           std::vector<Operand> operands;
           for (const Operand& operand : node.operands) {
             if (!expands(operand)) {
               operands.push_back(rewriter.at(operand));
               continue;
             }
             const Var x = rewriter.at(operand.value());
             operands.emplace_back(broadcast_in_dim(x, node.type.shape, all_axes(x)).id());
           }
           return Var(rewriter.builder(), rewriter.builder().add(node.op, operands));
         }});
  }
  return apply(program, name, replacements);
}

// The shape in which the operand of a broadcast can be read by an elementwise op of its result
// shape: rank 0, or its sizes at their places and 1 elsewhere. Nothing when its axes change order,
// and where plain operands have no such form.
std::optional<Shape> elided_shape(const Program& program, const Node& broadcast, OperandForm form) {
  const Shape& source = program.type(broadcast.operands[0].value()).shape;
  const auto& op = std::get<BroadcastInDim>(broadcast.op);
  if (source.rank() == 0) return source;
  if (form == OperandForm::plain) {
    return source.elements() == Dim(1) ? std::optional(Shape()) : std::nullopt;
  }
  if (!std::is_sorted(op.dims.begin(), op.dims.end())) return std::nullopt;
  Shape result(std::vector<Dim>(static_cast<std::size_t>(op.shape.rank()), Dim(1)));
  for (std::size_t i = 0; i < op.dims.size(); ++i) {
    result[op.dims[i]] = source[static_cast<std::int64_t>(i)];
  }
  return result;
}

// What an operand reads in place of a broadcast: a value, reshaped where it is of another shape.
struct Elision {
  ValueId source;
  Shape shape;
};

// For each operand, its elision; nothing where it stays. A broadcast of a broadcast goes at once.
std::vector<std::optional<Elision>> elisions(const Program& program, const Node& node,
                                             OperandForm form) {
  std::vector<std::optional<Elision>> result(node.operands.size());
  std::vector<Shape> shapes;  // of the operands that are values, as they stand
  for (const Operand& operand : node.operands) {
    shapes.push_back(operand.is_literal() ? Shape() : program.type(operand.value()).shape);
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    Operand next = node.operands[i];
    while (const Node* broadcast = broadcast_of(program, next)) {
      const std::optional<Shape> shape = elided_shape(program, *broadcast, form);
      if (!shape) break;
      // The other operands must still give the result its shape.
      const Shape before = std::exchange(shapes[i], *shape);
      Shape together;
      for (const Shape& each : shapes) together = broadcast_shapes(together, each);
      if (together != node.type.shape) {
        shapes[i] = before;
        break;
      }
      next = broadcast->operands[0];
      result[i] = Elision{next.value(), *shape};
      if (program.type(next.value()).shape != *shape) break;
    }
  }
  return result;
}

using FormOf = std::function<OperandForm(OpKind)>;

PassResult elide(const Program& program, const std::string& name, const FormOf& form_of) {
  std::vector<Replacement> replacements;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[static_cast<std::size_t>(i)];
    const auto is_broadcast = [&](const Operand& operand) {
      return broadcast_of(program, operand) != nullptr;
    };
    if (!is_elementwise(node.op) || std::ranges::none_of(node.operands, is_broadcast)) continue;
    std::vector<std::optional<Elision>> elided = elisions(program, node, form_of(kind_of(node.op)));
    if (std::none_of(elided.begin(), elided.end(), [](const auto& e) { return e.has_value(); })) {
      continue;
    }
    replacements.push_back({i, {}, {}, [&node, elided = std::move(elided)](Rewriter& rewriter) {
                              std::vector<Operand> operands;
                              for (std::size_t k = 0; k < node.operands.size(); ++k) {
                                if (!elided[k]) {
                                  operands.push_back(rewriter.at(node.operands[k]));
                                  continue;
                                }
                                const Var source = rewriter.at(elided[k]->source);
                                operands.emplace_back(reshape(source, elided[k]->shape).id());
                              }
                              return Var(rewriter.builder(),
                                         rewriter.builder().add(node.op, operands));
                            }});
  }
  return apply(program, name, replacements);
}

Pass elide_pass(FormOf form_of) {
  const std::string name = "elide_broadcasts";
  auto run = [name, form_of = std::move(form_of)](const Program& program) {
    return elide(program, name, form_of);
  };
  return {name, kEverySlot, {}, std::move(run), {}, {}, {}};
}

}  // namespace

Pass materialize_broadcasts() {
  const std::string name = "materialize_broadcasts";
  return {name, kEverySlot, {}, [name](const Program& p) { return materialize(p, name); },
          {},   {},         {}};
}

Pass elide_broadcasts() {
  return elide_pass([](OpKind) { return OperandForm::any; });
}

Pass elide_broadcasts(Target target) {
  return elide_pass(
      [target = std::move(target)](OpKind kind) { return target.operand_form(kind); });
}

}  // namespace mulgrad
