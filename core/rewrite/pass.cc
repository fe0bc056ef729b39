#include "core/rewrite/pass.h"

namespace mulgrad {

std::string_view to_string(Slot slot) {
  constexpr std::string_view kNames[] = {"forward", "derivative", "update"};
  return kNames[static_cast<int>(slot)];
}

std::string brief_name(const Program& program, ValueId node) {
  const std::string_view name = program.node(node).text_name();
  return node.to_string() + " " + std::string(name.substr(name.find('.') + 1));
}

}  // namespace mulgrad
