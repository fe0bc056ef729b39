// Schedules: what a rate is in each step, as an expression of the step's count.
#pragma once

#include <cstdint>

#include "core/expr.h"

namespace mulgrad {

// A rate over the steps t = 1, 2, ...: constant or falling along half a cosine, after a linear
// warm-up where one is asked for. With w steps of warm-up (0: none), d = max(t - w, 1):
//   constant  rate(t) = r min(t/w, 1)
//   cosine    rate(t) = (last + (peak - last) (1 + cos(pi min((d - 1)/steps, 1))) / 2) min(t/w, 1)
// The cosine is that of Loshchilov and Hutter, "SGDR" (ICLR 2017), equation 5, without restarts:
// peak in its first step, last from step `steps` + 1 on. The warm-up starts at 1/w of the first
// rate and reaches all of it in step w. Computed in f64 for f64 and in f32 otherwise, rounded once
// more to a narrower dtype.
class Schedule {
 public:
  // Constant. Throws invalid_argument unless the rate is finite and >= 0.
  Schedule(double rate);  // NOLINT: a number is a schedule
  // Throws invalid_argument for rates that are not finite and >= 0, and for fewer than 1 step.
  static Schedule cosine(double peak, std::int64_t steps, double last = 0);
  // This schedule after `steps` steps of warm-up, in place of its own. Throws invalid_argument for
  // a negative number.
  Schedule warmed_up(std::int64_t steps) const;

  // The rate, of rank 0 and a float dtype, from the rank-0 i64 count.
  Var emit(Var count, DType dtype) const;

 private:
  double first_;
  double last_;
  std::int64_t falling_ = 0;  // steps of the cosine; 0 for a constant
  std::int64_t rising_ = 0;   // steps of the warm-up
};

}  // namespace mulgrad
