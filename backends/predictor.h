// Predicting with a trained model, without the code that made it and without a trainer.
#pragma once

#include <memory>
#include <string>

#include "core/custom.h"
#include "core/tensor.h"
#include "lowering/target.h"

namespace mulgrad {

// One that was moved from can only be assigned to or destroyed.
class Predictor {
 public:
  // From a checkpoint that Trainer::save wrote. Custom ops of the model are found in `customs`.
  // Throws what read_checkpoint throws; invalid_data for a checkpoint that was saved before its
  // trainer had seen data, which holds no program, and for one whose program is no such text or
  // does not take its parameters.
  explicit Predictor(const std::string& checkpoint, const Target& target = Target::cpu(),
                     const CustomRegistry& customs = {});
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  // The model's outputs for any number of rows. Throws invalid_data for an id outside the model's,
  // and for inputs of another type what CpuFunction::run throws.
  Tensor predict(const Tensor& inputs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulgrad
