// Checking many rows, and running a function over them a part at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/session.h"

namespace mulgrad {

// Throws invalid_data naming the first row with an element that is not in [0, bound); integers
// only.
void expect_below(const Tensor& values, std::int64_t bound, const char* what);
// The same of a model's inputs, where they are ids.
void expect_ids(const Tensor& inputs, std::optional<std::int64_t> ids);

// Rows that predictions run at a time: enough to keep products busy, few enough that temporaries
// stay small.
inline constexpr std::int64_t kRowsPerRun = 256;

// Calls run(indices of rows) for `rows` rows in parts of at most `per_part`; once for no rows.
template <class F>
void in_parts(std::int64_t rows, std::int64_t per_part, F run) {
  std::vector<std::int64_t> indices;
  std::int64_t first = 0;
  do {
    const std::int64_t last = std::min(rows, first + per_part);
    indices.clear();
    for (std::int64_t row = first; row < last; ++row) indices.push_back(row);
    run(std::span<const std::int64_t>(indices));
    first = last;
  } while (first < rows);
}

// The first output of `function`, which takes `parameters` and then rows, for all rows of `inputs`.
Tensor predict_in_parts(CpuFunction& function, std::vector<Tensor> parameters,
                        const Tensor& inputs);

}  // namespace mulgrad
