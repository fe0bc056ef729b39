#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "autodiff/random.h"
#include "backends/trainer_impl.h"

namespace mulgrad {
namespace {

[[noreturn]] void bad(const std::string& message) {
  throw Error(Category::invalid_argument, message);
}

void check(const Dataset& train, const FitOptions& options) {
  if (train.rows() == 0) bad("found 0 training rows, expected at least one");
  if (options.epochs < 0) {
    bad("found " + std::to_string(options.epochs) + " epochs, expected 0 or more");
  }
  if (options.validation && options.validation->rows() == 0) {
    bad("found 0 validation rows, expected at least one");
  }
  if (!options.early_stop) return;
  if (options.early_stop->patience < 1) {
    bad("early stop: found patience " + std::to_string(options.early_stop->patience) +
        ", expected 1 or more");
  }
  if (!(options.early_stop->min_delta >= 0)) {
    bad("early stop: found min_delta " + std::to_string(options.early_stop->min_delta) +
        ", expected 0 or more");
  }
}

// Memory for the batches of an epoch, made when their size is first met: all but the last of an
// epoch have one size.
class Batches {
 public:
  explicit Batches(const Dataset& data) : data_(data) {}

  // The rows of these indices: inputs and targets. Valid until the next call.
  std::span<const Tensor> gather(std::span<const std::int64_t> indices) {
    std::array<Tensor, 2>* found = nullptr;
    for (std::array<Tensor, 2>& each : buffers_) {
      if (each[0].sizes()[0] == std::ssize(indices)) found = &each;
    }
    if (found == nullptr) {
      buffers_.push_back({take_rows(data_.inputs, indices), take_rows(data_.targets, indices)});
      return buffers_.back();
    }
    take_rows(data_.inputs, indices, (*found)[0]);
    take_rows(data_.targets, indices, (*found)[1]);
    return *found;
  }

 private:
  const Dataset& data_;
  std::vector<std::array<Tensor, 2>> buffers_;
};

enum class Epoch : std::uint8_t { stopped, whole };

// The steps of the epoch in progress that are not done yet.
Epoch run_steps(Trainer::Impl& self, Batches& batches, std::int64_t rows, const FitOptions& options,
                ProgressLine& progress) {
  FitState& fit = self.fit;
  const auto epoch = fit.epochs_done + 1;
  const std::vector<std::int64_t> order =
      shuffled(rows, self.options.seed, static_cast<std::uint64_t>(epoch));
  StepReport report;
  report.epoch = epoch;
  for (const PartMean& part : fit.losses) report.rows_done += part.rows;
  const std::int64_t batch_size = std::min(self.options.batch_size, rows);
  fit.losses.reserve(fit.losses.size() +
                     static_cast<std::size_t>((rows - report.rows_done) / batch_size + 1));
  fit.rows = rows;
  std::span<const std::int64_t> rest(order);
  rest = rest.subspan(static_cast<std::size_t>(report.rows_done));
  while (!rest.empty()) {
    const std::size_t count = std::min(rest.size(), static_cast<std::size_t>(batch_size));
    report.loss = self.compiled->session.step(batches.gather(rest.first(count)));
    rest = rest.subspan(count);
    fit.losses.push_back({report.loss, static_cast<std::int64_t>(count)});
    report.step = self.count();
    report.rows_done += static_cast<std::int64_t>(count);
    progress.step(report);
    if (options.on_step) options.on_step(report);
    if (self.stop_asked) return Epoch::stopped;
  }
  return Epoch::whole;
}

EpochReport report_of(Trainer& trainer, Trainer::Impl& self, const FitOptions& options) {
  EpochReport report;
  report.epoch = self.fit.epochs_done + 1;
  report.loss = mean_of(self.fit.losses);
  report.loss_interval = mean_interval(self.fit.losses);
  if (!options.validation) return report;
  const std::vector<PartMean> losses = self.losses(*options.validation);
  report.validation_loss = mean_of(losses);
  report.validation_loss_interval = mean_interval(losses);
  if (self.compiled->classes > 0) {
    const double share =
        accuracy(trainer.predict(options.validation->inputs), options.validation->targets);
    const std::int64_t rows = options.validation->targets.elements();
    report.validation_accuracy = share;
    report.validation_accuracy_interval =
        wilson_interval(std::llround(share * static_cast<double>(rows)), rows);
  }
  return report;
}

void note_best(Trainer::Impl& self, const EpochReport& report, const EarlyStop& early_stop) {
  FitState& fit = self.fit;
  const double value = report.validation_loss.value_or(report.loss);
  const bool is_better =
      !std::isnan(value) && (fit.best_epoch == 0 || value < fit.best_value - early_stop.min_delta);
  fit.stale_epochs = is_better ? 0 : fit.stale_epochs + 1;
  if (!is_better) return;
  fit.best_epoch = report.epoch;
  fit.best_value = value;
  if (early_stop.keep == Keep::best) {
    fit.best = {{self.values().begin(), self.values().end()}, self.state(), self.count()};
  } else {
    fit.best = {};
  }
}

// Makes all of it as it was after the best epoch, so that what follows goes on from there.
void return_to_best(Trainer::Impl& self) {
  FitState& fit = self.fit;
  self.restore(fit.best);
  fit.epochs_done = fit.best_epoch;
  fit.losses.clear();
  fit.reports.resize(static_cast<std::size_t>(fit.best_epoch));
  fit.stale_epochs = 0;
}

}  // namespace

std::vector<EpochReport> Trainer::fit(const Dataset& train, const FitOptions& options) {
  check(train, options);
  Impl& self = *impl_;
  FitState& fit = self.fit;
  const std::int64_t rows = train.rows();
  if (!fit.losses.empty() && fit.rows != rows) {
    bad("found " + std::to_string(rows) + " training rows, expected the " +
        std::to_string(fit.rows) + " of the epoch in progress");
  }
  self.compile(train);
  self.check_data(train);
  Batches batches(train);
  ProgressLine progress(options.progress, options.epochs, rows);
  const auto is_stale = [&] {
    return options.early_stop && fit.stale_epochs >= options.early_stop->patience;
  };
  while (fit.epochs_done < options.epochs && !is_stale() && !self.stop_asked) {
    if (run_steps(self, batches, rows, options, progress) == Epoch::stopped) break;
    const EpochReport report = report_of(*this, self, options);
    fit.reports.push_back(report);
    ++fit.epochs_done;
    fit.losses.clear();
    if (options.early_stop) note_best(self, report, *options.early_stop);
    progress.epoch(report);
    if (options.on_epoch) options.on_epoch(report);
  }
  const bool is_stopped = self.stop_asked.exchange(false);
  std::vector<EpochReport> reports = fit.reports;
  if (!is_stopped && options.early_stop && options.early_stop->keep == Keep::best &&
      !fit.best.parameters.empty()) {
    return_to_best(self);
  }
  return reports;
}

}  // namespace mulgrad
