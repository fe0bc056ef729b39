#include "autodiff/sweep.h"

#include <algorithm>

namespace mulgrad {
namespace {

// Undoes the broadcasting of an elementwise operand: sums over the axes that grew.
Var reduce_to(Var cotangent, const Shape& shape) {
  if (cotangent.shape() == shape) return cotangent;
  Axes grown;
  for (std::int64_t axis = 0; axis < cotangent.rank(); ++axis) {
    const bool was_one = shape.rank() == 0 || shape[axis] == Dim(1);
    if (was_one && !(cotangent.shape()[axis] == Dim(1))) grown.push_back(axis);
  }
  return reshape(grown.empty() ? cotangent : sum(cotangent, grown), shape);
}

}  // namespace

Sweep::Sweep(const Program& forward, ValueSet wanted)
    : forward_(forward), wanted_(std::move(wanted)), draft_(forward.name() + ".grad") {
  reads_.inputs.resize(forward.inputs().size());
  reads_.nodes.resize(forward.nodes().size());
  // Most rules make about two nodes, and what is read often sums what they make; room that is not
  // needed is never touched.
  draft_.reserve(3 * forward.nodes().size());
  last_.inputs.assign(forward.inputs().size(), -1);
  last_.nodes.assign(forward.nodes().size(), -1);
}

bool Sweep::is_made_again(ValueId value) const {
  if (!value.is_node()) return false;
  const Node& node = forward_.node(value);
  switch (info(node.op).op_class) {
    case OpClass::creation:
      return true;
    case OpClass::elementwise:
    case OpClass::broadcast:
    case OpClass::movement:
      return node.type.dtype == DType::i1;
    default:
      return false;
  }
}

ValueId Sweep::capture(ValueId value) {
  const ValueId input =
      draft_.input("c" + std::to_string(sources_.size()), forward_.type(value), InputRole::capture);
  sources_.emplace_back(input, value);
  return input;
}

Var Sweep::read(ValueId value) {
  if (!reads_[value] && !is_made_again(value)) reads_[value] = capture(value);
  if (reads_[value]) return {draft_, *reads_[value]};
  // A value waits on the stack until its operands are there: masks may be made by long chains.
  std::vector<ValueId> waiting{value};
  std::vector<Operand> operands;
  while (!waiting.empty()) {
    const ValueId next = waiting.back();
    std::optional<ValueId>& known = reads_[next];
    if (!known && !is_made_again(next)) known = capture(next);
    if (known) {
      waiting.pop_back();
      continue;
    }
    const Node& node = forward_.node(next);
    operands.clear();
    for (std::size_t i = node.operands.size(); i-- > 0;) {  // the first operand is made first
      const Operand& operand = node.operands[i];
      if (!operand.is_literal() && !reads_[operand.value()]) waiting.push_back(operand.value());
    }
    if (waiting.back() != next) continue;
    for (const Operand& operand : node.operands) {
      operands.push_back(operand.is_literal() ? operand : Operand(*reads_[operand.value()]));
    }
    known = draft_.add(node.op, operands);
  }
  return {draft_, *reads_[value]};
}

void Sweep::contribute(ValueId value, Use use, Var cotangent) {
  INTERNAL_CHECK(wanted(value));
  const Type& type = forward_.type(value);
  const Var reduced = reduce_to(cotangent, type.shape);
  INTERNAL_CHECK(reduced.type() == type);
  const auto index = static_cast<std::int32_t>(std::ssize(contributions_));
  contributions_.push_back({use, reduced.id(), std::exchange(last_[value], index)});
}

std::optional<Var> Sweep::total(ValueId value) {
  parts_.clear();
  for (std::int32_t i = std::exchange(last_[value], -1); i >= 0;) {
    const Contribution& part = contributions_[static_cast<std::size_t>(i)];
    parts_.emplace_back(part.use, part.cotangent);
    i = part.previous;
  }
  if (parts_.empty()) return std::nullopt;
  std::sort(parts_.begin(), parts_.end());
  Var result{draft_, parts_[0].second};
  for (std::size_t i = 1; i < parts_.size(); ++i) result = result + Var(draft_, parts_[i].second);
  return result;
}

std::optional<ValueId> Sweep::source(ValueId draft_input) const {
  // Inputs are made in ascending order of index, which is descending order of ids.
  const auto found = std::lower_bound(
      sources_.begin(), sources_.end(), draft_input,
      [](const auto& entry, ValueId input) { return entry.first.index() < input.index(); });
  if (found == sources_.end() || found->first != draft_input) return std::nullopt;
  return found->second;
}

Primal Primal::operand(Sweep& sweep, std::int64_t node, std::int64_t index) {
  const Node& reader = sweep.forward().node(ValueId::node(node));
  return {sweep,
          {static_cast<std::int32_t>(node), static_cast<std::int32_t>(index)},
          reader.operands[static_cast<std::size_t>(index)]};
}

Primal Primal::result(Sweep& sweep, std::int64_t node) {
  return {sweep, {static_cast<std::int32_t>(node), -1}, ValueId::node(node)};
}

Type Primal::type() const {
  if (is_literal()) return {literal().dtype, {}};
  return sweep_->forward().type(value_.value());
}

bool Primal::is_constant() const {
  if (is_literal()) return true;
  ValueId value = value_.value();
  while (value.is_node()) {
    const Node& node = sweep_->forward().node(value);
    if (std::holds_alternative<Fill>(node.op) || std::holds_alternative<Constant>(node.op)) {
      return true;
    }
    const bool moves =
        std::holds_alternative<BroadcastInDim>(node.op) || std::holds_alternative<Reshape>(node.op);
    if (!moves) return false;
    value = node.operands[0].value();
  }
  return false;
}

Primal::operator Var() const {
  if (is_literal()) return fill(sweep_->draft(), literal(), {});
  return sweep_->read(value_.value());
}

Primal::operator Term() const {
  if (is_literal()) return literal();
  return sweep_->read(value_.value());
}

}  // namespace mulgrad
