#include "core/rewrite/rewriter.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mulgrad {

namespace {

// Larger than any node index, so that reading it is refused by the builder.
const ValueId kUnknown = ValueId::node(std::numeric_limits<std::int32_t>::max());

}  // namespace

Rewriter::Rewriter(const Program& source) : source_(source), builder_(source.name()) {
  for (const Input& input : source.inputs()) builder_.input(input.name, input.type, input.role);
  // A node's counterpart is unknown until it is copied or replaced; inputs keep their ids.
  nodes_.assign(source.nodes().size(), kUnknown);
  builder_.reserve(nodes_.size());
}

Var Rewriter::at(ValueId source) {
  return {builder_, source.is_input() ? source : nodes_[static_cast<std::size_t>(source.index())]};
}

Operand Rewriter::at(const Operand& source) {
  if (source.is_literal()) return source;
  return at(source.value()).id();
}

std::vector<Var> Rewriter::operands(std::int64_t node) {
  std::vector<Var> result;
  for (const Operand& operand : source_.node(ValueId::node(node)).operands) {
    result.push_back(at(operand.value()));
  }
  return result;
}

void Rewriter::copy(std::int64_t node) {
  const Node& original = source_.node(ValueId::node(node));
  operands_.clear();
  for (const Operand& operand : original.operands) operands_.push_back(at(operand));
  builder_.set_origin(source_.origins()[static_cast<std::size_t>(node)]);
  replace(node, builder_.copy(source_, node, operands_));
}

void Rewriter::replace(std::int64_t node, ValueId result) {
  nodes_[static_cast<std::size_t>(node)] = result;
}

Program Rewriter::finish() {
  for (const Output& output : source_.outputs()) {
    builder_.output(output.name, at(output.value).id(), output.role);
  }
  return builder_.finish();
}

PassResult apply(const Program& source, const std::string& pass,
                 std::span<const Replacement> replacements) {
  PassResult result;
  if (replacements.empty()) {
    result.program = source;
    return result;
  }
  std::vector<bool> consumed(source.nodes().size());
  for (const Replacement& replacement : replacements) {
    for (const std::int64_t node : replacement.consumed) {
      consumed[static_cast<std::size_t>(node)] = true;
    }
  }
  Rewriter rewriter(source);
  std::size_t next = 0;
  for (std::int64_t node = 0; node < std::ssize(source.nodes()); ++node) {
    if (next == replacements.size() || replacements[next].root != node) {
      if (!consumed[static_cast<std::size_t>(node)]) rewriter.copy(node);
      continue;
    }
    const Replacement& replacement = replacements[next++];
    Region region{pass,
                  replacement.consumed,
                  {},
                  ValueId::node(0),
                  replacement.numerics,
                  source.origins()[static_cast<std::size_t>(node)],
                  replacement.work_factor};
    region.source.push_back(node);
    std::sort(region.source.begin(), region.source.end());
    const std::int64_t before = std::ssize(rewriter.builder().nodes());
    rewriter.builder().set_origin(region.origin);
    region.terminal = replacement.emit(rewriter).id();
    region.emitted.resize(rewriter.builder().nodes().size() - static_cast<std::size_t>(before));
    std::iota(region.emitted.begin(), region.emitted.end(), before);
    INTERNAL_CHECK(rewriter.builder().type(region.terminal) == source.type(ValueId::node(node)));
    rewriter.replace(node, region.terminal);
    result.regions.push_back(std::move(region));
  }
  INTERNAL_CHECK(next == replacements.size());
  result.program = rewriter.finish();
  result.changed = true;
  return result;
}

}  // namespace mulgrad
