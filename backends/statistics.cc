#include "backends/statistics.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace mulgrad {
namespace {

constexpr double kNormal975 = 1.959963984540054;  // the normal distribution's 97.5 % quantile

double rows_of(std::span<const PartMean> parts) {
  double rows = 0;
  for (const PartMean& part : parts) rows += static_cast<double>(part.rows);
  return rows;
}

}  // namespace

double mean_of(std::span<const PartMean> parts) {
  double sum = 0;
  for (const PartMean& part : parts) sum += part.value * static_cast<double>(part.rows);
  return sum / rows_of(parts);
}

Interval mean_interval(std::span<const PartMean> parts) {
  if (parts.size() < 2) return {};
  const double mean = mean_of(parts);
  const double rows = rows_of(parts);
  double sum = 0;
  for (const PartMean& part : parts) {
    const double deviation = static_cast<double>(part.rows) / rows * (part.value - mean);
    sum += deviation * deviation;
  }
  const auto k = static_cast<double>(parts.size());
  const double half = kNormal975 * std::sqrt(k / (k - 1) * sum);
  return {mean - half, mean + half};
}

Interval wilson_interval(std::int64_t successes, std::int64_t trials) {
  if (successes < 0 || successes > trials) {
    throw Error(Category::invalid_argument, "found " + std::to_string(successes) +
                                                " successes in " + std::to_string(trials) +
                                                " trials");
  }
  if (trials == 0) return {0, 1};
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double z2 = kNormal975 * kNormal975;
  const double middle = p + z2 / (2 * n);
  const double half = kNormal975 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  const double scale = 1 + z2 / n;
  // Rounding must not push a bound past the value that it is exactly.
  const double low = successes == 0 ? 0 : (middle - half) / scale;
  const double high = successes == trials ? 1 : (middle + half) / scale;
  return {low, high};
}

}  // namespace mulgrad
