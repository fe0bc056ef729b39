#include "backends/progress.h"

#include <unistd.h>

#include <array>
#include <cstdio>

namespace mulgrad {
namespace {

constexpr std::int64_t kWidth = 30;
constexpr std::chrono::milliseconds kBetween{100};
constexpr char kClear[] = "\r\x1b[K";  // to the start of the line, and what stood there away

}  // namespace

ProgressLine::ProgressLine(Progress progress, std::int64_t epochs, std::int64_t rows)
    : is_shown_(progress == Progress::bar && ::isatty(STDERR_FILENO) != 0),
      epochs_(epochs),
      rows_(rows) {}

ProgressLine::~ProgressLine() {
  if (is_drawn_) std::fputc('\n', stderr);
}

void ProgressLine::step(const StepReport& report) {
  if (!is_shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (is_drawn_ && now - last_ < kBetween) return;
  last_ = now;
  is_drawn_ = true;
  std::array<char, kWidth + 1> bar{};
  for (std::int64_t i = 0; i < kWidth; ++i) {
    bar[static_cast<std::size_t>(i)] = i * rows_ < report.rows_done * kWidth ? '#' : '.';
  }
  std::fprintf(stderr, "%sepoch %lld/%lld [%s] %lld/%lld rows  loss %.4g", kClear,
               static_cast<long long>(report.epoch), static_cast<long long>(epochs_), bar.data(),
               static_cast<long long>(report.rows_done), static_cast<long long>(rows_),
               report.loss);
}

void ProgressLine::epoch(const EpochReport& report) {
  if (!is_shown_) return;
  const auto print = [](const char* what, double value, const Interval& interval) {
    std::fprintf(stderr, "  %s %.4g [%.4g, %.4g]", what, value, interval.low, interval.high);
  };
  std::fprintf(stderr, "%sepoch %lld/%lld", kClear, static_cast<long long>(report.epoch),
               static_cast<long long>(epochs_));
  print("loss", report.loss, report.loss_interval);
  if (report.validation_loss) {
    print("validation loss", *report.validation_loss, *report.validation_loss_interval);
  }
  if (report.validation_accuracy) {
    print("accuracy", *report.validation_accuracy, *report.validation_accuracy_interval);
  }
  std::fputc('\n', stderr);
  is_drawn_ = false;
}

}  // namespace mulgrad
