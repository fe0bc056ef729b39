// Programs edited by hand, as a faulty pass of a third party would.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/builder.h"
#include "core/rewrite/pass.h"

namespace mulgrad::testing {

// The program with its interface and its nodes' operands edited.
struct Edit {
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::function<Operand(Operand)> operand = [](Operand operand) { return operand; };

  explicit Edit(const Program& program)
      : inputs(program.inputs().begin(), program.inputs().end()),
        outputs(program.outputs().begin(), program.outputs().end()) {}
  Program build(const Program& program) const {
    Builder builder(program.name());
    for (const Input& input : inputs) builder.input(input.name, input.type, input.role);
    for (const Node& node : program.nodes()) {
      std::vector<Operand> operands;
      for (const Operand& old : node.operands) operands.push_back(operand(old));
      builder.add(node.op, operands);
    }
    for (const Output& output : outputs) builder.output(output.name, output.value, output.role);
    return builder.finish();
  }
};

// A pass of the slot that claims to have changed the program into what `rewrite` makes of it.
inline Pass pass_of(std::string name, Slot slot, std::function<Program(const Program&)> rewrite) {
  Pass result;
  result.name = std::move(name);
  result.accepts = {slot};
  result.run = [rewrite = std::move(rewrite)](const Program& program) {
    Program after = rewrite(program);
    const bool changed = !(after == program);
    return PassResult{std::move(after), {}, changed};
  };
  return result;
}

// A pass that makes an edit.
inline Pass editing_pass(std::string name, Slot slot, std::function<void(Edit&)> change) {
  return pass_of(std::move(name), slot, [change = std::move(change)](const Program& program) {
    Edit edited(program);
    change(edited);
    return edited.build(program);
  });
}

}  // namespace mulgrad::testing
