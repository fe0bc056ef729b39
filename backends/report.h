// What fit() tells about its steps and epochs.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/statistics.h"

namespace mulgrad {

struct StepReport {
  std::int64_t step = 0;       // of the run, 1 for the first
  std::int64_t epoch = 0;      // 1 for the first
  std::int64_t rows_done = 0;  // of the epoch
  double loss = 0;             // before the step's update
};

// Intervals hold the value with 95 % confidence, as statistics.h computes them: those of losses
// from the steps' losses in training, and in validation from those of parts of rows/32 rows (at
// least 1, at most 256).
//
// Accuracy is of the validation rows. A step computes its loss alone, so that of the training rows
// takes a pass of its own over them, which on_epoch may make as well:
// accuracy(trainer.predict(train.inputs), train.targets), with wilson_interval.
struct EpochReport {
  std::int64_t epoch = 0;  // 1 for the first
  double loss = 0;         // mean over the training rows, each as its step saw it
  Interval loss_interval = {};
  std::optional<double> validation_loss = std::nullopt;
  std::optional<Interval> validation_loss_interval = std::nullopt;
  std::optional<double> validation_accuracy = std::nullopt;  // of class labels
  std::optional<Interval> validation_accuracy_interval = std::nullopt;

  bool operator==(const EpochReport&) const = default;
};

}  // namespace mulgrad
