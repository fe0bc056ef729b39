// A device for tests of compiled steps.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/interpreter.h"
#include "lowering/training_step.h"

namespace mulgrad::testing {

// A machine that does not know what a mean, a reduction, a broadcast or a division is. Its values
// are numbers of registers, so lowering gives a list of instructions that runs later.
class StepMachine {
 public:
  struct Register {
    int index;
  };
  struct Instruction {
    Node node;
    std::vector<int> operands;  // -1 for a literal
    int result;
  };
  HandlerRegistry<Register> registry;
  std::map<std::string, std::vector<Instruction>> code;      // by artifact
  std::map<std::string, std::map<std::string, int>> inputs;  // by artifact and name
  std::map<int, Tensor> memory;
  int registers = 0;
  int handler_calls = 0;

  StepMachine(const StepMachine&) = delete;  // its handlers point to it
  explicit StepMachine(const std::vector<OpKind>& left_out = {}) {
    for (const OpKind kind :
         {OpKind::Fill, OpKind::DotGeneral, OpKind::Multiply, OpKind::Add, OpKind::Subtract,
          OpKind::Negate, OpKind::Transpose, OpKind::Reshape, OpKind::Exponential}) {
      if (std::ranges::count(left_out, kind) > 0) continue;
      registry.add(
          kind,
          [this](const HandlerContext& context,
                 std::span<const HandlerOperand<Register>> operands) -> Register {
            ++handler_calls;
            Instruction instruction{context.node(), {}, registers++};
            for (const auto& operand : operands) {
              instruction.operands.push_back(operand.is_literal() ? -1 : operand.value().index);
            }
            code[context.artifact.name].push_back(instruction);
            return {instruction.result};
          });
    }
  }

  CompiledTrainingStep<Register> compile(const TrainingSpec& spec, const Passes& passes,
                                         const Bindings& bindings = {}) {
    return compile_training_step(
        spec, bindings, Target::of(registry), registry,
        [this](const InputContext& context) -> Register {
          inputs[context.artifact.name][context.input().name] = registers;
          return {registers++};
        },
        passes);
  }

  void run(const std::string& artifact) {
    for (const Instruction& instruction : code[artifact]) {
      std::vector<const Tensor*> operands;
      for (const int operand : instruction.operands) {
        operands.push_back(operand < 0 ? nullptr : &memory.at(operand));
      }
      memory[instruction.result] = evaluate_node(instruction.node, operands);
    }
  }
  void set(const std::string& artifact, const std::string& input, const Tensor& value) {
    memory[inputs.at(artifact).at(input)] = value;
  }
};

}  // namespace mulgrad::testing
