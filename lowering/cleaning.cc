#include "lowering/cleaning.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/custom.h"
#include "core/hash_index.h"
#include "core/rewrite/rewriter.h"

namespace mulgrad {
namespace {

// Decides about a whole program at once, replacements ascending by root.
using Decide = std::function<std::vector<Replacement>(const Program&)>;

Pass cleaning_pass(std::string name, Numerics numerics, Decide decide) {
  auto run = [name, decide = std::move(decide)](const Program& program) {
    return apply(program, name, decide(program));
  };
  return {std::move(name),
          {Slot::forward, Slot::derivative, Slot::update},
          numerics,
          std::move(run),
          {},
          {},
          {}};
}

// The root is another value of the source program.
Replacement alias(std::int64_t root, ValueId value) {
  return {root, {}, {}, [value](Rewriter& rewriter) { return rewriter.at(value); }};
}

std::uint64_t hash_operand(std::uint64_t hash, const Operand& operand) {
  if (operand.is_literal()) return hash_mix(hash, operand.literal().bits);
  const ValueId value = operand.value();
  return hash_mix(hash, static_cast<std::uint64_t>(value.index()) * 2 + value.is_input());
}

std::vector<Replacement> find_common(const Program& program) {
  const std::span<const Node> nodes = program.nodes();
  // For each node, the first node that computes the same.
  std::vector<ValueId> first;
  first.reserve(nodes.size());
  const auto resolved = [&](const Operand& operand) -> Operand {
    if (operand.is_literal() || operand.value().is_input()) return operand;
    return first[static_cast<std::size_t>(operand.value().index())];
  };
  HashIndex index(nodes.size());
  std::vector<Replacement> replacements;
  for (std::int64_t i = 0; i < std::ssize(nodes); ++i) {
    const Node& node = nodes[static_cast<std::size_t>(i)];
    std::uint64_t hash = hash_op(node.op);
    for (const Operand& operand : node.operands) hash = hash_operand(hash, resolved(operand));
    const auto is_same = [&](std::int64_t number) {
      const Node& other = nodes[static_cast<std::size_t>(number)];
      return std::ranges::equal(other.operands, node.operands, {}, resolved, resolved) &&
             other.op == node.op;
    };
    const std::int64_t known = index.find_or_insert(hash, i, is_same);
    first.push_back(ValueId::node(known < 0 ? i : known));
    if (known >= 0) replacements.push_back(alias(i, first.back()));
  }
  return replacements;
}

// Where a value comes from once the transposes, or the reshapes, on its way are composed.
struct Movement {
  ValueId value;     // what stands for the node: itself, or an earlier value where nothing moves
  ValueId base;      // what is moved
  Axes permutation;  // of a transpose
};

std::vector<Replacement> find_movement_pairs(const Program& program) {
  std::vector<Replacement> replacements;
  std::vector<Movement> movements;
  const auto resolve = [&](ValueId value) {
    return value.is_input() ? value : movements[static_cast<std::size_t>(value.index())].value;
  };
  // The movement behind a value that is made by an op of type T, or null.
  const auto behind = [&]<class T>(ValueId value, std::type_identity<T>) -> const Movement* {
    if (value.is_input() || !std::holds_alternative<T>(program.node(value).op)) return nullptr;
    return &movements[static_cast<std::size_t>(value.index())];
  };
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[static_cast<std::size_t>(i)];
    Movement movement{ValueId::node(i), ValueId::node(i), {}};
    bool moves = true;
    bool composed = false;
    if (const auto* op = std::get_if<Transpose>(&node.op)) {
      movement.base = resolve(node.operands[0].value());
      movement.permutation = op->permutation;
      if (const auto* inner = behind(movement.base, std::type_identity<Transpose>())) {
        for (std::int64_t& axis : movement.permutation) {
          axis = inner->permutation[static_cast<std::size_t>(axis)];
        }
        movement.base = inner->base;
        composed = true;
      }
      moves = !std::is_sorted(movement.permutation.begin(), movement.permutation.end());
    } else if (std::holds_alternative<Reshape>(node.op)) {
      movement.base = resolve(node.operands[0].value());
      if (const auto* inner = behind(movement.base, std::type_identity<Reshape>())) {
        movement.base = inner->base;
        composed = true;
      }
      moves = program.type(movement.base).shape != node.type.shape;
    }
    if (!moves) {
      movement.value = movement.base;
      replacements.push_back(alias(i, movement.base));
    } else if (composed) {
      replacements.push_back({i, {}, {}, [&node, movement](Rewriter& rewriter) {
                                const Var base = rewriter.at(movement.base);
                                if (std::holds_alternative<Transpose>(node.op)) {
                                  return transpose(base, movement.permutation);
                                }
                                return reshape(base, node.type.shape);
                              }});
    }
    movements.push_back(std::move(movement));
  }
  return replacements;
}

std::vector<Replacement> find_extent_one(const Program& program) {
  std::vector<Replacement> replacements;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[static_cast<std::size_t>(i)];
    const Axes* axes = nullptr;
    bool sums = true;
    if (const auto* reduce = std::get_if<Reduce>(&node.op)) {
      axes = &reduce->axes;
      sums = reduce->kind == Reduction::sum;
    } else if (const auto* mean = std::get_if<Mean>(&node.op)) {
      axes = &mean->axes;
    }
    if (axes == nullptr) continue;
    const Shape& shape = program.type(node.operands[0].value()).shape;
    const bool fits = std::all_of(axes->begin(), axes->end(),
                                  [&](std::int64_t axis) { return shape[axis] == Dim(1); });
    if (!fits) continue;
    replacements.push_back({i, {}, {.sign_of_zero = sums}, [i, &node](Rewriter& rewriter) {
                              return reshape(rewriter.operands(i)[0], node.type.shape);
                            }});
  }
  return replacements;
}

std::vector<Replacement> find_stop_gradients(const Program& program) {
  std::vector<Replacement> replacements;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[static_cast<std::size_t>(i)];
    if (std::holds_alternative<StopGradient>(node.op)) {
      replacements.push_back(alias(i, node.operands[0].value()));
    }
  }
  return replacements;
}

// Is it the 1x1 matrix of one?
bool is_unit(const Program& program, ValueId value) {
  if (value.is_input()) return false;
  const auto* fill = std::get_if<Fill>(&program.node(value).op);
  return fill != nullptr && fill->shape == Shape{1, 1} &&
         fill->value == Literal::one(fill->value.dtype);
}

std::vector<Replacement> find_unit_products(const Program& program) {
  std::vector<Replacement> replacements;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[static_cast<std::size_t>(i)];
    const auto* op = std::get_if<DotGeneral>(&node.op);
    if (op == nullptr || op->lhs_contracting != Axes{1} || op->rhs_contracting != Axes{0}) continue;
    const ValueId lhs = node.operands[0].value();
    const ValueId rhs = node.operands[1].value();
    std::optional<ValueId> other;
    if (is_unit(program, rhs)) other = lhs;
    if (is_unit(program, lhs)) other = rhs;
    if (!other || program.type(*other) != node.type) continue;
    replacements.push_back(alias(i, *other));
    replacements.back().numerics = {.sign_of_zero = true};
  }
  return replacements;
}

PassResult drop_dead(const Program& program) {
  const std::vector<bool> reached = reachable_nodes(program);
  if (std::find(reached.begin(), reached.end(), false) == reached.end())
    return {program, {}, false};
  Rewriter rewriter(program);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i]) rewriter.copy(static_cast<std::int64_t>(i));
  }
  return {rewriter.finish(), {}, true};
}

}  // namespace

Pass common_subexpressions() { return cleaning_pass("common_subexpressions", {}, find_common); }

Pass dead_code() {
  return {"dead_code", {Slot::forward, Slot::derivative, Slot::update}, {}, drop_dead, {}, {}, {}};
}

Pass transpose_pairs() { return cleaning_pass("transpose_pairs", {}, find_movement_pairs); }

Pass extent_one_reduce_to_reshape() {
  return cleaning_pass("extent_one_reduce_to_reshape", {.sign_of_zero = true}, find_extent_one);
}

Pass unit_products() {
  return cleaning_pass("unit_products", {.sign_of_zero = true}, find_unit_products);
}

Pass remove_stop_gradient() {
  return cleaning_pass("remove_stop_gradient", {}, find_stop_gradients);
}

}  // namespace mulgrad
