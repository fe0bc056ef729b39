#include "autodiff/schedules.h"

#include <cmath>
#include <numbers>
#include <string>

namespace mulgrad {

Schedule::Schedule(double rate) : first_(rate), last_(rate) {
  if (rate >= 0 && std::isfinite(rate)) return;
  throw Error(Category::invalid_argument,
              "rate: found " + std::to_string(rate) + ", expected a finite number >= 0");
}

Schedule Schedule::cosine(double peak, std::int64_t steps, double last) {
  if (steps < 1) {
    throw Error(Category::invalid_argument,
                "cosine: found " + std::to_string(steps) + " steps, expected 1 or more");
  }
  Schedule result(peak);
  result.last_ = Schedule(last).first_;
  result.falling_ = steps;
  return result;
}

Schedule Schedule::warmed_up(std::int64_t steps) const {
  if (steps < 0) {
    throw Error(Category::invalid_argument,
                "warm-up: found " + std::to_string(steps) + " steps, expected 0 or more");
  }
  Schedule result = *this;
  result.rising_ = steps;
  return result;
}

Var Schedule::emit(Var count, DType dtype) const {
  Builder& builder = count.builder();
  if (falling_ == 0 && rising_ == 0) return fill(builder, Literal::from_double(dtype, first_), {});
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Var t = convert(count, wide);
  const auto falling = static_cast<double>(falling_);
  const auto rising = static_cast<double>(rising_);
  Var rate = fill(builder, Literal::from_double(wide, first_), {});
  if (falling_ > 0) {
    const Var done = maximum(t - rising, 1) - 1;
    const Var wave = cos(minimum(done / falling, 1) * std::numbers::pi);
    rate = last_ + (first_ - last_) * ((1 + wave) * 0.5);
  }
  if (rising_ > 0) rate = rate * minimum(t / rising, 1);
  return dtype == wide ? rate : convert(rate, dtype);
}

}  // namespace mulgrad
