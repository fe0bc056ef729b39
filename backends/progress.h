// A line on a terminal that tells how far fit() is.
#pragma once

#include <chrono>
#include <cstdint>

#include "backends/report.h"

namespace mulgrad {

enum class Progress : std::uint8_t {
  silent,
  bar,  // on standard error, where that is a terminal; else silent
};

class ProgressLine {
 public:
  ProgressLine(Progress progress, std::int64_t epochs, std::int64_t rows);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();  // leaves the cursor on a line of its own

  void step(const StepReport& report);    // redraws the bar, ten times a second at most
  void epoch(const EpochReport& report);  // a line that stays

 private:
  bool is_shown_;
  bool is_drawn_ = false;
  std::int64_t epochs_;
  std::int64_t rows_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace mulgrad
