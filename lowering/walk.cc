#include "lowering/walk.h"

#include <algorithm>
#include <unordered_set>

namespace mulgrad {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
std::size_t at(ValueId value) { return static_cast<std::size_t>(value.index()); }

// Uses by reachable nodes and by outputs; a repeated operand counts each time.
struct ReachableUses {
  std::vector<bool> reachable;
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> nodes;
  std::vector<bool> is_output;  // per node

  explicit ReachableUses(const Program& program)
      : reachable(reachable_nodes(program)),
        inputs(program.inputs().size()),
        nodes(program.nodes().size()),
        is_output(program.nodes().size()) {
    for (std::size_t i = 0; i < reachable.size(); ++i) {
      if (!reachable[i]) continue;
      for (const Operand& operand : program.nodes()[i].operands) {
        if (!operand.is_literal()) add(operand.value());
      }
    }
    for (const Output& output : program.outputs()) {
      add(output.value);
      if (output.value.is_node()) is_output[at(output.value)] = true;
    }
  }

  void add(ValueId value) { ++(value.is_input() ? inputs : nodes)[at(value)]; }
  // Is it read by one operand of one node, and by nothing else?
  bool single(ValueId value) const {
    return value.is_node() && nodes[at(value)] == 1 && !is_output[at(value)];
  }
};

[[noreturn]] void refuse(const std::string& label, const std::string& text) {
  throw Error(Category::handler_contract_violation, "the fusion claim is refused: " + text, label);
}

}  // namespace

std::vector<std::int64_t> lowering_order(const Program& program) {
  const ReachableUses uses(program);
  const auto count = std::ssize(program.nodes());
  // The number of nodes that move with a node when it moves to its consumer, itself included; 0
  // stands for a node without operands.
  std::vector<std::int64_t> weight(at(count));
  // The single-use producers of a node, the one that is to stand next to it last.
  const auto producers = [&](std::int64_t node) {
    std::vector<std::int64_t> result;
    for (const Operand& operand : program.node(ValueId::node(node)).operands) {
      if (!operand.is_literal() && uses.single(operand.value())) {
        result.push_back(operand.value().index());
      }
    }
    std::stable_sort(result.begin(), result.end(), [&](std::int64_t a, std::int64_t b) {
      if ((weight[at(a)] == 0) != (weight[at(b)] == 0)) return weight[at(a)] == 0;
      return weight[at(a)] > weight[at(b)];
    });
    return result;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (!uses.reachable[at(i)]) continue;
    const Node& node = program.node(ValueId::node(i));
    if (node.operands.empty()) continue;
    weight[at(i)] = 1;
    for (const std::int64_t producer : producers(i)) {
      weight[at(i)] += std::max<std::int64_t>(weight[at(producer)], 1);
    }
  }
  std::vector<std::int64_t> order;
  order.reserve(at(count));
  std::vector<std::pair<std::int64_t, bool>> stack;  // a node, and whether its producers are out
  for (std::int64_t root = 0; root < count; ++root) {
    if (!uses.reachable[at(root)] || uses.single(ValueId::node(root))) continue;
    stack.emplace_back(root, false);
    while (!stack.empty()) {
      const auto [node, expanded] = stack.back();
      stack.pop_back();
      if (expanded) {
        order.push_back(node);
        continue;
      }
      stack.emplace_back(node, true);
      const std::vector<std::int64_t> before = producers(node);
      for (auto producer = before.rbegin(); producer != before.rend(); ++producer) {
        stack.emplace_back(*producer, false);
      }
    }
  }
  return order;
}

namespace detail {

WalkState::WalkState(const Program& program)
    : order_(lowering_order(program)), done_(program.nodes().size()) {
  ReachableUses uses(program);
  input_uses_ = std::move(uses.inputs);
  node_uses_ = std::move(uses.nodes);
}

std::vector<std::int64_t> WalkState::offer(std::size_t position, std::int64_t window) const {
  std::vector<std::int64_t> result;
  for (; position < order_.size() && std::ssize(result) < window; ++position) {
    if (!done(order_[position])) result.push_back(order_[position]);
  }
  return result;
}

std::int64_t WalkState::check_claim(const Artifact& artifact, std::span<const std::int64_t> offered,
                                    std::span<const std::int64_t> claimed) const {
  const Program& program = artifact.program;
  const std::string due = artifact.label(offered.front());
  if (claimed.empty()) refuse(due, "it claims no node");
  std::unordered_set<std::int64_t> inside;
  for (const std::int64_t node : claimed) {
    if (std::find(offered.begin(), offered.end(), node) == offered.end()) {
      refuse(due, "it claims the node %" + std::to_string(node) + ", which was not offered");
    }
    if (!inside.insert(node).second) {
      refuse(due, "it claims the node %" + std::to_string(node) + " twice");
    }
  }
  if (inside.count(offered.front()) == 0) refuse(due, "it leaves out the node that is due");
  std::map<std::int64_t, std::int64_t> outside_uses;
  for (const std::int64_t node : inside) outside_uses[node] = node_uses_[at(node)];
  for (const std::int64_t node : inside) {
    for (const Operand& operand : program.node(ValueId::node(node)).operands) {
      if (operand.is_literal() || operand.value().is_input()) continue;
      const std::int64_t producer = operand.value().index();
      if (inside.count(producer) > 0) {
        --outside_uses[producer];
      } else if (!done(producer)) {
        refuse(due, "the operand %" + std::to_string(producer) + " of %" + std::to_string(node) +
                        " is neither ready nor inside");
      }
    }
  }
  std::vector<std::int64_t> escaping;
  for (const auto& [node, uses] : outside_uses) {
    if (uses > 0) escaping.push_back(node);
  }
  if (escaping.size() != 1) {
    refuse(due, "found " + std::to_string(escaping.size()) +
                    " of its values read from outside, expected 1");
  }
  return escaping.front();
}

std::vector<ValueId> WalkState::finish(const Program& program,
                                       std::span<const std::int64_t> nodes) {
  std::vector<ValueId> dead;
  for (const std::int64_t node : nodes) {
    done_[at(node)] = true;
    for (const Operand& operand : program.node(ValueId::node(node)).operands) {
      if (operand.is_literal()) continue;
      const ValueId value = operand.value();
      if (--(value.is_input() ? input_uses_ : node_uses_)[at(value)] == 0) dead.push_back(value);
    }
  }
  return dead;
}

void rethrow_from_handler(const std::string& label) {
  std::string text = "an exception of unknown type";
  try {
    throw;
  } catch (const std::exception& exception) {
    text = exception.what();
  } catch (...) {  // the text says it
  }
  throw Error(Category::handler_contract_violation, text, label);
}

}  // namespace detail
}  // namespace mulgrad
