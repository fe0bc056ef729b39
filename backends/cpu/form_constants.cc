#include "backends/cpu/form_constants.h"

#include <span>
#include <vector>

namespace mulgrad::cpu {
namespace {

template <class T>
bool are_block_mask(std::span<const T> numbers, std::int64_t block, std::int64_t batch) {
  const T last = static_cast<T>(batch - 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if ((numbers[i] == last) != (at / batch / block == at % batch)) return false;
  }
  return true;
}
template <class T>
bool are_block_mask(std::span<const T> rows, std::span<const T> columns, std::int64_t block,
                    std::int64_t batch) {
  if (std::ssize(columns) != 2 * batch || rows.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    const std::int64_t of = static_cast<std::int64_t>(i) / 2 / block;
    if (rows[i] != static_cast<T>(of) || rows[i + 1] != 1) return false;
  }
  for (std::int64_t j = 0; j < batch; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const auto below = static_cast<std::size_t>(batch + j);
    if (columns[at] != 1 || columns[below] != static_cast<T>(batch - 1 - j)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> shift_of(const Tensor& matrix) {
  const std::int64_t n = matrix.sizes()[1];
  if (matrix.rank() != 2 || matrix.sizes()[0] != n || n < 2) return std::nullopt;
  const std::vector<double> values = matrix.to_doubles();
  std::int64_t shift = 0;
  while (shift < n && values[static_cast<std::size_t>(shift * n)] != 1) ++shift;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const double expected = row == (column + shift) % n ? 1 : 0;
      if (values[static_cast<std::size_t>(row * n + column)] != expected) return std::nullopt;
    }
  }
  return shift;
}

std::optional<std::array<Axes, 3>> parts_of(const Shape& shape,
                                            const std::array<std::int64_t, 3>& sizes) {
  std::array<Axes, 3> parts;
  std::int64_t axis = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t size = 1;
    while (size < sizes[i] && axis < shape.rank()) {
      size *= shape[axis].size();
      parts[i].push_back(axis++);
    }
    if (size != sizes[i]) return std::nullopt;
  }
  for (; axis < shape.rank(); ++axis) {
    if (shape[axis] != Dim(1)) return std::nullopt;
    parts[2].push_back(axis);
  }
  return parts;
}

bool picks_a_column(const Tensor& matrix) {
  std::int64_t ones = 0;
  for (const double value : matrix.to_doubles()) {
    if (value != 0 && value != 1) return false;
    ones += value == 1 ? 1 : 0;
  }
  return ones == 1;
}

bool is_block_mask(const Tensor& numbers, std::int64_t block, std::int64_t batch) {
  return numbers.dtype() == DType::f32 ? are_block_mask(numbers.data<float>(), block, batch)
                                       : are_block_mask(numbers.data<double>(), block, batch);
}

bool is_block_mask(const Tensor& rows, const Tensor& columns, std::int64_t block,
                   std::int64_t batch) {
  if (rows.dtype() == DType::f32) {
    return are_block_mask(rows.data<float>(), columns.data<float>(), block, batch);
  }
  return are_block_mask(rows.data<double>(), columns.data<double>(), block, batch);
}

}  // namespace mulgrad::cpu
