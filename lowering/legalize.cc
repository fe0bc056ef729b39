#include "lowering/legalize.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/custom.h"
#include "core/interpreter.h"
#include "core/rewrite/rewriter.h"
#include "lowering/legalize_rules.h"

namespace mulgrad {
namespace {

using legalize::kExact;
using legalize::kProduct;
using legalize::kShifts;
using legalize::kSignOfZero;
using legalize::kSum;

const char* const kName = "legalize_to_matmul";

// How a source node is replaced; `emit` sees the operands that are values, in order.
struct Rule {
  Numerics numerics;
  std::function<Var(Rewriter&)> emit;
  std::int64_t work_factor = 1;
};
// The rule, or why there is none.
using Choice = std::variant<Rule, std::string>;

Choice none(std::string why) { return why; }

const char* const kNoRule = "there is no rule for it";

// The node of a source program that a rule is chosen for. The program and the target outlive it.
struct Site {
  const Program& program;
  const Target& target;
  std::int64_t index;

  const Node& node() const { return program.node(ValueId::node(index)); }
  const Type& operand(std::size_t i) const { return program.type(node().operands[i].value()); }
  // A rule of the one operand.
  Rule of_operand(Numerics numerics, std::function<Var(Var)> emit) const {
    return {numerics, [emit = std::move(emit), index = index](Rewriter& rewriter) {
              return emit(rewriter.operands(index)[0]);
            }};
  }
};

bool is_static(const Site& site) {
  const auto fits = [](const Shape& shape) { return shape.is_static(); };
  if (!fits(site.node().type.shape)) return false;
  for (const Operand& operand : site.node().operands) {
    if (!operand.is_literal() && !fits(site.program.type(operand.value()).shape)) return false;
  }
  return true;
}

// Among the operands that the op's result is made of; so a select's predicate does not count.
bool has_logical_value(const Site& site) {
  std::span<const Operand> operands = site.node().operands;
  if (std::holds_alternative<Select>(site.node().op)) operands = operands.subspan(1);
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    return !operand.is_literal() && site.program.type(operand.value()).dtype == DType::i1;
  });
}

Choice rule_of_extremum(const Site& site, const Reduce& op) {
  const bool is_max = op.kind == Reduction::max;
  if (site.target.has(OpKind::Slice)) {
    const auto emit = is_max ? legalize::max_by_slices : legalize::min_by_slices;
    return site.of_operand(kExact, [&op, emit](Var x) { return emit(x, op.axes); });
  }
  const Type& x = site.operand(0);
  if (!is_float(x.dtype)) return none("shifts need a float dtype");
  const bool fits = std::all_of(op.axes.begin(), op.axes.end(), [&](std::int64_t axis) {
    return x.shape[axis].size() <= legalize::kMaxShiftedAxis;
  });
  if (!fits) {
    return none("an axis is larger than " + std::to_string(legalize::kMaxShiftedAxis) +
                ", the limit of shift matrices");
  }
  const auto emit = is_max ? legalize::max_by_shifts : legalize::min_by_shifts;
  return site.of_operand(kShifts, [&op, emit](Var x) { return emit(x, op.axes); });
}

Choice rule_of(const Site& site, const Reduce& op) {
  const DType dtype = site.operand(0).dtype;
  switch (op.kind) {
    case Reduction::sum:
      return site.of_operand(kSum, [&op](Var x) { return legalize::sum_of(x, op.axes); });
    case Reduction::max:
    case Reduction::min:
      return rule_of_extremum(site, op);
    case Reduction::product:
      if (!site.target.has(OpKind::Slice)) return none("a product of elements needs slices");
      return site.of_operand(kProduct,
                             [&op](Var x) { return legalize::product_by_slices(x, op.axes); });
    case Reduction::and_:
    case Reduction::or_:
      if (dtype != DType::i1) return none("only i1 is reduced by a logical op");
      return site.of_operand(kExact, [&op](Var x) {
        return op.kind == Reduction::and_ ? legalize::all_of(x, op.axes)
                                          : legalize::any_of(x, op.axes);
      });
  }
  return none("no such reduction");
}

Choice rule_of(const Site& site, const Mean& op) {
  return site.of_operand(
      kSum, [&op, target = &site.target](Var x) { return legalize::mean_of(*target, x, op); });
}

Choice rule_of(const Site& site, const BroadcastInDim& op) {
  const bool is_exact =
      site.operand(0).dtype == DType::i1 || legalize::elements(site.operand(0).shape) <= 1;
  return site.of_operand(is_exact ? kExact : kSignOfZero,
                         [&op](Var x) { return legalize::broadcast(x, op.shape, op.dims); });
}

Choice rule_of(const Site& site, const DotGeneral& op) {
  // The product of sizes without overflow: a size of 0 ends it, what exceeds the limit stays there.
  constexpr std::int64_t kFar = legalize::kMaxBatch + 1;
  std::int64_t batch = 1;
  for (const std::int64_t axis : op.lhs_batch) {
    batch = std::min(batch, kFar) * std::min(site.operand(0).shape[axis].size(), kFar);
  }
  const auto by = [&](legalize::DotRoute route, const Numerics& numerics, std::int64_t factor) {
    return Rule{numerics,
                [&op, route, index = site.index](Rewriter& rewriter) {
                  const std::vector<Var> operands = rewriter.operands(index);
                  return legalize::dot(route, operands[0], operands[1], op,
                                       rewriter.source().type(ValueId::node(index)).shape);
                },
                factor};
  };
  if (batch > 1 && site.target.product_form() != ProductForm::plain) {
    return by(legalize::DotRoute::batched, kSignOfZero, 1);
  }
  if (batch <= 1) return by(legalize::DotRoute::plain, kSignOfZero, 1);
  if (site.target.has_slices()) {
    if (batch < kFar) return by(legalize::DotRoute::slices, kSignOfZero, 1);
    return none("the batch is larger than " + std::to_string(legalize::kMaxBatch));
  }
  if (batch > legalize::kMaxBlocks) {
    const std::string factor =
        batch < kFar ? std::to_string(batch) : "more than " + std::to_string(legalize::kMaxBatch);
    return none("a masked block product would do " + factor + " times the work, the limit is " +
                std::to_string(legalize::kMaxBlocks) + " times");
  }
  return by(legalize::DotRoute::blocks, kShifts, batch);
}

Choice rule_of(const Site& site, const Iota&) {
  const Node& node = site.node();
  if (legalize::elements(node.type.shape) > legalize::kMaxConstantElements) {
    return none("the constant would have more than " +
                std::to_string(legalize::kMaxConstantElements) + " elements");
  }
  return Rule{kExact, [&node](Rewriter& rewriter) {
                return constant(rewriter.builder(), evaluate_node(node, {}));
              }};
}

// A constant of i1 is a comparison of a constant of f32.
Choice rule_of_logical_constant(const Site& site) {
  const Node& node = site.node();
  if (legalize::elements(node.type.shape) > legalize::kMaxConstantElements) {
    return none("the constant would have more than " +
                std::to_string(legalize::kMaxConstantElements) + " elements");
  }
  return Rule{kExact, [&node](Rewriter& rewriter) {
                const Tensor value = evaluate_node(node, {});
                const Tensor numbers = Tensor::from_doubles(
                    DType::f32, {value.sizes().begin(), value.sizes().end()}, value.to_doubles());
                return legalize::to_logical(constant(rewriter.builder(), numbers));
              }};
}

// The same op on operands that have the shape of the result.
Rule rule_of_broadcasting(const Site& site) {
  bool is_exact = true;
  bool some_has_the_shape = false;  // once it is broadcast
  for (const Operand& operand : site.node().operands) {
    if (operand.is_literal()) continue;
    const Type& type = site.program.type(operand.value());
    if (legalize::elements(type.shape) != 1) some_has_the_shape = true;
    const bool expands = type.rank() != 0 && type.shape != site.node().type.shape;
    if (expands && type.dtype != DType::i1 && legalize::elements(type.shape) != 1) is_exact = false;
  }
  return {is_exact ? kExact : kSignOfZero, [=, index = site.index](Rewriter& rewriter) {
            const Node& node = rewriter.source().node(ValueId::node(index));
            std::vector<Operand> operands;
            for (const Operand& operand : node.operands) {
              if (operand.is_literal()) {
                operands.push_back(operand);
                continue;
              }
              const Var x = rewriter.at(operand.value());
              if (x.rank() == 0 || x.shape() == node.type.shape) {
                operands.emplace_back(x.id());
              } else if (some_has_the_shape && legalize::elements(x.shape()) == 1) {
                operands.emplace_back(legalize::scalar_of(x).id());
              } else {
                operands.emplace_back(legalize::broadcast_operand(x, node.type.shape).id());
              }
            }
            return Var(rewriter.builder(), rewriter.builder().add(node.op, operands));
          }};
}

// The same op on 0 and 1 of f32 in place of i1. A select keeps its predicate.
Rule rule_of_logical_values(const Site& site) {
  return {kExact, [index = site.index](Rewriter& rewriter) {
            const Node& node = rewriter.source().node(ValueId::node(index));
            std::vector<Operand> operands;
            for (std::size_t i = 0; i < node.operands.size(); ++i) {
              const Var x = rewriter.at(node.operands[i].value());
              const bool keeps = i == 0 && std::holds_alternative<Select>(node.op);
              operands.emplace_back(keeps ? x.id() : legalize::to_numbers(x).id());
            }
            const Var result(rewriter.builder(), rewriter.builder().add(node.op, operands));
            return result.dtype() == node.type.dtype ? result : legalize::to_logical(result);
          }};
}

bool broadcasts(const Site& site) {
  const std::vector<Operand>& operands = site.node().operands;
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    if (operand.is_literal()) return false;
    const Shape& shape = site.program.type(operand.value()).shape;
    return shape.rank() != 0 && shape != site.node().type.shape;
  });
}

Choice choose(const Site& site) {
  const Node& node = site.node();
  if (std::holds_alternative<StopGradient>(node.op)) {
    return site.of_operand(kExact, [](Var x) { return x; });
  }
  if (!is_static(site)) return none("the shape is symbolic: bind first");
  if (const auto* op = std::get_if<Reduce>(&node.op)) return rule_of(site, *op);
  if (const auto* op = std::get_if<Mean>(&node.op)) return rule_of(site, *op);
  if (const auto* op = std::get_if<BroadcastInDim>(&node.op)) return rule_of(site, *op);
  if (const auto* op = std::get_if<DotGeneral>(&node.op)) return rule_of(site, *op);
  if (const auto* op = std::get_if<Iota>(&node.op)) return rule_of(site, *op);
  const OpClass op_class = info(node.op).op_class;
  if (op_class == OpClass::creation) {
    if (node.type.dtype != DType::i1) return none(kNoRule);
    return rule_of_logical_constant(site);
  }
  if (op_class == OpClass::elementwise && broadcasts(site)) return rule_of_broadcasting(site);
  if (const auto* op = std::get_if<Convert>(&node.op)) {
    if (op->dtype != DType::i1) return none(kNoRule);
    return site.of_operand(
        kExact, [](Var x) { return x.dtype() == DType::i1 ? x : legalize::to_logical(x); });
  }
  const bool takes_numbers = op_class == OpClass::movement ||
                             std::holds_alternative<Compare>(node.op) ||
                             std::holds_alternative<Select>(node.op);
  if (takes_numbers && has_logical_value(site)) return rule_of_logical_values(site);
  return none(kNoRule);
}

// A node that the target refuses, and what comes of it.
struct Candidate {
  std::int64_t node;
  std::string refusal;
  Choice choice;
};

// Why the target refuses something that the region emitted, or nothing.
std::optional<std::string> refusal_of(const Program& program, const Region& region,
                                      const Target& target) {
  for (const std::int64_t node : region.emitted) {
    if (const auto reason = target.refusal(program, node)) {
      return "its rule emits " + std::string(program.node(ValueId::node(node)).text_name()) + ": " +
             *reason;
    }
  }
  return std::nullopt;
}

PassResult apply_rules(const Program& program, const std::vector<Candidate>& candidates) {
  std::vector<Replacement> replacements;
  for (const Candidate& candidate : candidates) {
    if (const auto* rule = std::get_if<Rule>(&candidate.choice)) {
      replacements.push_back({candidate.node, {}, rule->numerics, rule->emit, rule->work_factor});
    }
  }
  return apply(program, kName, replacements);
}

struct Outcome {
  std::vector<Candidate> candidates;
  PassResult result;
};

Outcome legalize_program(const Program& program, const Target& target) {
  std::vector<Candidate> candidates;
  const std::vector<bool> reached = reachable_nodes(program);
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    if (auto refusal = target.refusal(program, i)) {
      candidates.push_back({i, std::move(*refusal), choose({program, target, i})});
    }
  }
  // A rule whose ops the target does not take either is withdrawn. Whether a node is taken depends
  // on itself and on the types of its operands, so withdrawing one rule does not spoil another.
  PassResult result = apply_rules(program, candidates);
  std::size_t region = 0;
  bool withdrawn = false;
  for (Candidate& candidate : candidates) {
    if (!std::holds_alternative<Rule>(candidate.choice)) continue;
    auto reason = refusal_of(result.program, result.regions[region++], target);
    if (!reason) continue;
    candidate.choice = std::move(*reason);
    withdrawn = true;
  }
  if (withdrawn) result = apply_rules(program, candidates);
  for (const Candidate& candidate : candidates) {
    const auto* why = std::get_if<std::string>(&candidate.choice);
    if (why != nullptr && *why != kNoRule) result.declined.push_back({candidate.node, *why});
  }
  return {std::move(candidates), std::move(result)};
}

std::string times(std::int64_t work_factor) {
  return work_factor == 1 ? "" : ", " + std::to_string(work_factor) + " times the work";
}

// "%3 reduce: rewritten {...}", or "%3 reduce: <why the target refuses it>; <why there is no
// rule>".
std::vector<std::string> explain(const Program& program, const Target& target) {
  std::vector<std::string> lines;
  for (const Candidate& candidate : legalize_program(program, target).candidates) {
    const auto* rule = std::get_if<Rule>(&candidate.choice);
    lines.push_back(brief_name(program, ValueId::node(candidate.node)) + ": " +
                    (rule != nullptr
                         ? "rewritten " + rule->numerics.to_string() + times(rule->work_factor)
                         : candidate.refusal + "; " + std::get<std::string>(candidate.choice)));
  }
  return lines;
}

}  // namespace

Pass legalize_to_matmul(Target target) {
  const auto shared = std::make_shared<const Target>(std::move(target));
  return {kName,
          {Slot::forward, Slot::derivative, Slot::update},
          kSum | (shared->has(OpKind::Slice) ? kProduct : kShifts),
          [shared](const Program& program) { return legalize_program(program, *shared).result; },
          {},
          {},
          [shared](const Program& program) { return explain(program, *shared); }};
}

}  // namespace mulgrad
