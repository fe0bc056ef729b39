// Trainer: a model, a loss and an optimizer compiled for a target and trained on the CPU backend.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "autodiff/optimizers.h"
#include "backends/dataset.h"
#include "backends/progress.h"
#include "backends/report.h"
#include "lowering/target.h"
#include "lowering/training_step.h"

namespace mulgrad {

// (prediction, target) -> a loss of rank 0 or [1,1], averaged over the rows.
using Loss = std::function<Var(Var, Var)>;

struct TrainerOptions {
  Target target = Target::cpu();  // the passes of default_pipeline(target) make the step fit it
  std::int64_t batch_size = 32;   // rows a step; the last batch of an epoch may be smaller
  std::uint64_t seed = 0;         // of the initial parameters and of every epoch's shuffle
  std::optional<double> clip_norm = std::nullopt;  // TrainingSpec::clip_norm; none: no clipping
  int threads = 0;  // as CpuOptions::threads; results do not depend on it
};

// After which epoch fit() with early stopping leaves the trainer.
enum class Keep : std::uint8_t { best, last };

// Stops where the validation loss, or without validation the training loss, has not become smaller
// than its best by more than `min_delta` for `patience` epochs. With Keep::best, fit() ends with
// the trainer as it was after the best epoch, also where all epochs were done: parameters,
// optimizer state, count and epochs done. Another fit() trains the epochs behind it again.
struct EarlyStop {
  std::int64_t patience = 5;  // >= 1
  double min_delta = 0;       // >= 0
  Keep keep = Keep::best;
};

struct FitOptions {
  std::int64_t epochs = 10;                          // of the whole run, those done before included
  std::optional<Dataset> validation = std::nullopt;  // measured after every epoch
  std::optional<EarlyStop> early_stop = std::nullopt;  // none: all epochs
  Progress progress = Progress::silent;
  // Called after every step and every epoch. They may call the trainer's const members, save(),
  // predict(), loss(), and stop().
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
};

// One that was moved from can only be assigned to or destroyed.
class Trainer {
 public:
  // Initialises the parameters by options.seed. Throws invalid_argument for a batch size below 1 or
  // a negative number of threads, invalid_training_declaration for an empty loss or a null
  // optimizer.
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
  // yet. Valid until the trainer is destroyed or resumes.
  const TrainingStep& prepared(const Dataset& data);

  // Trains until options.epochs passes over the shuffled rows are done since the trainer was made,
  // those before a save() and resume() included: a run that was stopped, even within an epoch, goes
  // on where it was. The last partial batch is trained and averaged over its real rows. Returns one
  // report per epoch done, from the run's first, those behind the best included. Throws
  // invalid_argument for no rows, a negative number of epochs, early stopping out of its domain,
  // and other rows than those of an epoch in progress; and what step() throws.
  std::vector<EpochReport> fit(const Dataset& train, const FitOptions& options);
  // Makes fit() return after the step, or the epoch, that is at hand. To be called in a callback,
  // from another thread or in a signal handler.
  void stop();

  // One step on these rows; returns the loss. Throws invalid_argument for no rows, invalid_data for
  // a label outside the model's classes or an id outside its ids, invalid_loss_output for a loss
  // that is no scalar, non_finite_loss (parameters stay as before the step; the message names the
  // step and the first node that made a NaN or an infinity), unsupported_operator when the target
  // cannot.
  double step(const Dataset& batch);

  // The model's outputs for any number of rows. Throws invalid_data for an id outside the model's.
  Tensor predict(const Tensor& inputs);
  // The mean loss over the rows of `data`; NaN for no rows.
  double loss(const Dataset& data);

  // Writes a checkpoint (backends/checkpoint.h), replacing the file as a whole: one that is killed
  // leaves the old one. Throws io_error.
  void save(const std::string& path);
  // Takes up a checkpoint: parameters, optimizer state, count, seed and how far fit() had come.
  // What follows is then bit-equal to a run that was never interrupted, by the same version of the
  // library on the same machine. All else is this trainer's and not compared: loss, the numbers
  // given to the optimizer, rates of dropout, batch size, clipping, target. Nor is the program in
  // the checkpoint: another version's layers may emit another one for the same model. Throws what
  // read_checkpoint throws, and for a checkpoint of another model or optimizer, naming what
  // differs: invalid_data for a parameter that is missing or too many, another
  // Layer::description(), or other names of the optimizer's state; dtype_mismatch or shape_mismatch
  // for a parameter of another type. The trainer is then as before.
  void resume(const std::string& path);

  std::span<const Parameter> parameters() const;
  std::vector<Tensor> values() const;  // of the parameters, in their order
  std::int64_t fallbacks() const;      // nodes of the compiled step run by the interpreter

  struct Impl;  // of the library's own

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulgrad
