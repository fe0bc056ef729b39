// What is said of a run in numbers: means and shares with the interval that they are known to.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace mulgrad {

// A 95 % confidence interval; unbounded where the data tells nothing.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool operator==(const Interval&) const = default;
};

// The mean of a part of the rows.
struct PartMean {
  double value = 0;
  std::int64_t rows = 0;
};

// The mean over all rows, sum(n_i x_i) / sum(n_i); NaN without rows.
double mean_of(std::span<const PartMean> parts);

// By the normal distribution: mean +- 1.96 s, where s^2 = k/(k-1) sum(w_i^2 (x_i - mean)^2), w_i =
// n_i / sum(n_i), is the squared standard error of a weighted mean of k parts (Cochran, Sampling
// Techniques, 3rd ed. 1977, section 6.4: a ratio estimate); for equal parts that is the sample
// variance over k. Parts count as independent, and with fewer than about 30 of them the interval is
// too narrow. Unbounded for fewer than two parts.
Interval mean_interval(std::span<const PartMean> parts);

// Of a share of `successes` in `trials` = n, p = successes/n, by Wilson's score (Journal of the
// American Statistical Association 22, 1927): (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) /
// (1 + z^2/n), which stays within [0, 1] and does not shrink to a point at 0 or 1. [0, 1] for no
// trials. Throws invalid_argument unless 0 <= successes <= trials.
Interval wilson_interval(std::int64_t successes, std::int64_t trials);

}  // namespace mulgrad
