#include "lowering/artifact.h"

#include <utility>

namespace mulgrad {

Artifact Artifact::untouched(std::string name, const Program& program) {
  const Program source = program.with_fresh_origins();
  return {std::move(name), source, source};
}

std::string Artifact::label(std::int64_t node) const {
  const Origin origin = program.origins()[static_cast<std::size_t>(node)];
  const Node& lowered = program.node(ValueId::node(node));
  if (origin == kNoOrigin || origin >= std::ssize(source.nodes())) {
    return name + ":" + program.describe(ValueId::node(node));
  }
  const std::string text = name + ":" + source.describe(ValueId::node(origin));
  if (kind_of(source.node(ValueId::node(origin)).op) == kind_of(lowered.op)) return text;
  return text + " (as " + std::string(lowered.text_name()) + ")";
}

std::string Artifact::input_label(std::int64_t input) const {
  return name + ":" + program.describe(ValueId::input(input));
}

void throw_if_refused(std::span<const Refusal> refusals) {
  if (refusals.empty()) return;
  std::string message = "found " + std::to_string(refusals.size()) +
                        (refusals.size() == 1 ? " unsupported node:" : " unsupported nodes:");
  for (const Refusal& refusal : refusals) {
    message += "\n  " + refusal.label + ": " + refusal.reason;
  }
  throw Error(Category::unsupported_operator, message);
}

}  // namespace mulgrad
