// Running programs on the CPU: one bound program, or a program with a plan per binding.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/program.h"
#include "core/tensor.h"
#include "lowering/plan.h"

namespace mulgrad {

// A bound program as a plan.
class CpuProgram {
 public:
  // Throws unresolved_symbolic_shape for a program that is not bound.
  explicit CpuProgram(const Program& program);

  // The outputs and captures in order. Throws invalid_argument for a wrong number of inputs,
  // dtype_mismatch or shape_mismatch naming the input that is not of its declared type.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }

 private:
  Program program_;
  Plan plan_;
};

}  // namespace mulgrad
