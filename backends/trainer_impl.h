// What a Trainer is made of: for the files that implement it.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "backends/checkpoint.h"
#include "backends/cpu/session.h"
#include "backends/cpu/threads.h"
#include "backends/trainer.h"

namespace mulgrad {

struct Trainer::Impl {
  Impl(Sequential m, Loss l, std::shared_ptr<const Optimizer> o, TrainerOptions t);

  Sequential model;
  Loss loss;
  std::shared_ptr<const Optimizer> optimizer;
  TrainerOptions options;
  std::shared_ptr<cpu::ThreadPool> pool;
  std::vector<Parameter> parameters;  // of the model
  std::optional<std::int64_t> ids;    // of the model, Layer::ids()
  FitState fit;
  std::atomic<bool> stop_asked = false;

  Trained start;  // what the session takes over when it is made; without state: zeros

  // Made when the first data tells the types of inputs and targets.
  struct Compiled {
    TrainingSession session;
    CpuFunction loss;      // parameters, x, y -> the loss
    std::int64_t classes;  // 0 where the targets are no labels
  };
  std::optional<Compiled> compiled;
  // Parameters, x -> the model's output; made when the first inputs tell their type.
  std::optional<Program> prediction;
  Tensor no_rows;  // of the prediction's input: [0, ...]
  std::optional<CpuFunction> predictor;

  Compiled& compile(const Dataset& data);
  const Program& prediction_program(const Tensor& x);
  CpuFunction function(Program program) const;
  void check_data(const Dataset& data) const;

  // Of the parameters, in their order.
  std::span<const Tensor> values() const;
  // The optimizer state per parameter, zeros before the first step.
  std::vector<std::vector<Tensor>> state() const;
  std::int64_t count() const;
  void restore(Trained from);

  // The mean loss of each part of the rows: at least 32 parts where there are as many rows.
  std::vector<PartMean> losses(const Dataset& data);

 private:
  std::vector<Var> declare(Tape& tape) const;
  TrainingSpec spec(const Type& x, const Type& y) const;
};

}  // namespace mulgrad
