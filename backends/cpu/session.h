// Running programs on the CPU: one bound program, a program with a plan per binding, and a training
// step with its parameters and optimizer state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/tensor.h"
#include "lowering/plan.h"
#include "lowering/training_step.h"

namespace mulgrad {

namespace cpu {
class ThreadPool;
}

struct CpuOptions {
  // That share the work of large products; results do not depend on it. 0: as many as the machine
  // runs at once, at most 8.
  int threads = 0;
  // Threads to share with others, in place of own ones; what shares them runs one at a time.
  std::shared_ptr<cpu::ThreadPool> pool = nullptr;
};

// The values of the symbols in `declared` that make it the types of `values`. Throws
// invalid_argument for a wrong number of values; dtype_mismatch, shape_mismatch or
// symbolic_shape_mismatch naming the input that does not fit; unresolved_symbolic_shape for a
// symbol that never stands alone in a size.
Bindings infer_bindings(std::span<const DeclaredInput> declared, std::span<const Tensor> values);

// A bound program as a plan.
class CpuProgram {
 public:
  // Throws unresolved_symbolic_shape for a program that is not bound, invalid_argument for a
  // negative number of threads.
  explicit CpuProgram(const Program& program, const CpuOptions& options = {});

  // The outputs and captures in order. Throws invalid_argument for a wrong number of inputs,
  // dtype_mismatch or shape_mismatch naming the input that is not of its declared type.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }

 private:
  Program program_;
  Plan plan_;
};

// A program of possibly symbolic types, compiled for a target when sizes are first met and cached
// per binding.
class CpuFunction {
 public:
  // Throws invalid_argument for a negative number of threads.
  CpuFunction(Program program, Target target, std::vector<Pass> passes,
              const CpuOptions& options = {});

  // As CpuProgram::run for the sizes of these inputs. Throws also what infer_bindings, run_passes
  // and bind throw, and unsupported_operator listing every node that the target refuses after the
  // passes.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

 private:
  CpuProgram& compiled(const Bindings& bindings);

  Program program_;
  std::vector<DeclaredInput> declared_;
  Target target_;
  std::vector<Pass> passes_;
  std::shared_ptr<cpu::ThreadPool> pool_;
  std::map<Bindings, CpuProgram> cache_;
};

// A training step with its parameters and optimizer state, which live here and are updated in
// place. Steps on batches of different sizes share them; each size is planned once. One that was
// moved from can only be assigned to or destroyed.
class TrainingSession {
 public:
  // `parameters` in the order of spec.parameters; the state starts at zero. Throws
  // invalid_argument for a wrong number or a negative number of threads, dtype_mismatch or
  // shape_mismatch naming the parameter.
  TrainingSession(TrainingSpec spec, Target target, Passes passes, std::vector<Tensor> parameters,
                  const CpuOptions& options = {});
  ~TrainingSession();
  TrainingSession(TrainingSession&&) noexcept;
  TrainingSession& operator=(TrainingSession&&) noexcept;

  // The declared inputs that are neither parameters nor random, in order: what a step is given.
  std::span<const DeclaredInput> data_inputs() const;

  // One step; returns the loss before the update. `optimizer_inputs` are given, in order, when the
  // spec has no step scalars. The first step of a size compiles it and throws what
  // prepare_training_step and require_supported throw, and invalid_loss_output for a loss of more
  // than one element. Throws what infer_bindings throws for data that does not fit, and
  // non_finite_loss naming the step and the first node that made a NaN or an infinity: parameters,
  // state and count are then as before the step.
  double step(std::span<const Tensor> data, std::span<const Tensor> optimizer_inputs = {});
  // The same with tensors that lie apart.
  double step(std::span<const Tensor* const> data, std::span<const Tensor> optimizer_inputs = {});

  // The step for these sizes, compiled and cached; runs nothing and accepts unsupported nodes.
  const TrainingStep& prepared(const Bindings& bindings);
  // Throws what the first step of that size throws.
  const Plan& plan(const Bindings& bindings);

  std::int64_t count() const;  // steps done
  std::span<const Tensor> parameters() const;
  // Per parameter, the tensors of spec.state in order.
  std::span<const std::vector<Tensor>> state() const;
  // Takes up from elsewhere. Throws as the constructor.
  void restore(std::int64_t count, std::span<const Tensor> parameters,
               std::span<const std::vector<Tensor>> state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulgrad
