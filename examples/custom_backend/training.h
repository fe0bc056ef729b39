// A training step as C: what compile_training_step lowers, called in order by one C function.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "examples/custom_backend/emitter.h"
#include "examples/custom_backend/library.h"
#include "lowering/training_step.h"

namespace mulgrad::examples {

class CTrainingStep {
 public:
  // Compiles the step for Target::matmul_only() with the handlers of a CUnit. Throws what
  // compile_training_step throws, where everything that the target lacks is reported before the
  // first handler is called, and invalid_loss_output for a loss of more than one element.
  CTrainingStep(std::string name, const TrainingSpec& spec, const Bindings& bindings);

  const TrainingStep& step() const { return compiled_.step; }
  // The whole step as one program: the C function takes its inputs.
  const Program& program() const { return program_; }

  // C functions of all artifacts, and `void <name>(...)`, which makes one step: it takes a pointer
  // per input of program(), updates parameters and their state in place, and writes the loss last.
  const std::string& text() const { return text_; }

  // One step by the C function, in place. `values` are the inputs of program(); returns the loss.
  double run(const CLibrary& library, std::span<Tensor> values) const;
  // The same step by the reference interpreter.
  double interpret(std::span<Tensor> values) const;

 private:
  std::string name_;
  CUnit unit_;
  CompiledTrainingStep<CValue> compiled_;
  Program program_;
  std::string text_;
};

// A program for Target::matmul_only() as a C function: inference beside training. It is called as
// "<name>_forward_run", with a pointer per input, then one per output.
std::string c_program(const std::string& name, const Program& program);

// One zeroed tensor per input of a program.
std::vector<Tensor> zeros(const Program& program);

}  // namespace mulgrad::examples
