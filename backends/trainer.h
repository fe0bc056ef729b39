// Trainer: a model, a loss and an optimizer compiled for a target and trained on the CPU backend.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "autodiff/optimizers.h"
#include "backends/dataset.h"
#include "lowering/target.h"
#include "lowering/training_step.h"

namespace mulgrad {

// (prediction, target) -> a loss of rank 0 or [1,1], averaged over the rows.
using Loss = std::function<Var(Var, Var)>;

struct TrainerOptions {
  Target target = Target::cpu();  // the passes of default_pipeline(target) make the step fit it
  std::int64_t batch_size = 32;   // rows a step; the last batch of an epoch may be smaller
  std::uint64_t seed = 0;         // of the initial parameters and of every epoch's shuffle
};

struct EpochReport {
  std::int64_t epoch = 0;  // 1 for the first
  double loss = 0;         // mean over the training rows, each as its step saw it
  std::optional<double> validation_loss = std::nullopt;
  std::optional<double> validation_accuracy = std::nullopt;  // for class labels
};

struct FitOptions {
  std::int64_t epochs = 10;
  std::optional<Dataset> validation = std::nullopt;  // measured after every epoch
  std::function<void(const EpochReport&)> on_epoch = {};
};

// One that was moved from can only be assigned to or destroyed.
class Trainer {
 public:
  // Initialises the parameters by options.seed. Throws invalid_argument for a batch size below 1,
  // invalid_training_declaration for an empty loss or a null optimizer.
  template <std::derived_from<Optimizer> O>
  Trainer(Sequential model, Loss loss, O optimizer, TrainerOptions options = {})
      : Trainer(std::move(model), std::move(loss), std::make_shared<const O>(std::move(optimizer)),
                std::move(options)) {}
  Trainer(Sequential model, Loss loss, std::shared_ptr<const Optimizer> optimizer,
          TrainerOptions options);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // The step (forward, derivative, update) on batches of options.batch_size rows typed like `data`:
  // its programs, and what the target covers of them. Runs nothing; an unsupported node is no error
  // yet. Valid until the trainer is destroyed.
  const TrainingStep& prepared(const Dataset& data);

  // Trains for options.epochs passes over the shuffled rows, the last partial batch included and
  // averaged over its real rows. Returns one report per epoch. Throws invalid_argument for no rows
  // or a negative number of epochs, and what step() throws.
  std::vector<EpochReport> fit(const Dataset& train, const FitOptions& options);

  // One step on these rows; returns the loss. Throws invalid_argument for no rows, invalid_data for
  // a label outside the model's classes, invalid_loss_output for a loss that is no scalar,
  // non_finite_loss (parameters stay as before the step; the message names the step and the first
  // node that made a NaN or an infinity), unsupported_operator when the target cannot.
  double step(const Dataset& batch);

  // The model's outputs for any number of rows.
  Tensor predict(const Tensor& inputs);
  // The mean loss over the rows of `data`; NaN for no rows.
  double loss(const Dataset& data);

  std::span<const Parameter> parameters() const;
  std::vector<Tensor> values() const;  // of the parameters, in their order
  std::int64_t fallbacks() const;      // nodes of the compiled step run by the interpreter

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulgrad
