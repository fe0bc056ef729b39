#include "backends/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "autodiff/random.h"

namespace mulgrad {
namespace {

// The last epoch that shuffled() takes: no training run gets there, so a split never repeats the
// order of an epoch.
constexpr std::uint64_t kSplitEpoch = (std::uint64_t{1} << 63) - 1;

std::int64_t leading_size(const Tensor& tensor, const char* what) {
  if (tensor.rank() == 0) {
    throw Error(Category::shape_mismatch,
                std::string("found ") + what + " of rank 0, expected a first axis of rows");
  }
  return tensor.sizes()[0];
}

}  // namespace

Dataset make_dataset(Tensor inputs, Tensor targets) {
  const std::int64_t rows = leading_size(inputs, "inputs");
  if (leading_size(targets, "targets") != rows) {
    throw Error(Category::shape_mismatch, "found " + std::to_string(rows) + " rows of inputs and " +
                                              std::to_string(targets.sizes()[0]) +
                                              " of targets, expected as many");
  }
  const auto fits = [](const Tensor& tensor) {
    return is_float(tensor.dtype()) || tensor.dtype() == DType::i32;
  };
  const bool both_float = is_float(inputs.dtype()) && is_float(targets.dtype());
  if (!fits(inputs) || !fits(targets) || (both_float && targets.dtype() != inputs.dtype())) {
    throw Error(Category::dtype_mismatch,
                "found inputs " + inputs.type().to_string() + " and targets " +
                    targets.type().to_string() +
                    ", expected floats or i32 ids, and i32 labels or floats of the same dtype");
  }
  return {std::move(inputs), std::move(targets)};
}

std::int64_t Dataset::rows() const { return leading_size(inputs, "inputs"); }

Dataset Dataset::take(std::span<const std::int64_t> indices) const {
  return {take_rows(inputs, indices), take_rows(targets, indices)};
}

std::pair<Dataset, Dataset> Dataset::split(double held_out_fraction, std::uint64_t seed) const {
  if (!(held_out_fraction >= 0 && held_out_fraction <= 1)) {
    throw Error(Category::invalid_argument, "found a held-out fraction of " +
                                                std::to_string(held_out_fraction) +
                                                ", expected one in [0, 1]");
  }
  const std::vector<std::int64_t> order = shuffled(rows(), seed, kSplitEpoch);
  const auto held_out =
      static_cast<std::size_t>(std::floor(held_out_fraction * static_cast<double>(rows())));
  const std::span<const std::int64_t> all(order);
  return {take(all.first(all.size() - held_out)), take(all.last(held_out))};
}

Dataset classification_from_csv(const Csv& csv, std::string_view label_column, std::int64_t classes,
                                double scale) {
  const auto found = std::find(csv.header.begin(), csv.header.end(), label_column);
  if (found == csv.header.end()) {
    throw Error(Category::invalid_data,
                "found no column named \"" + std::string(label_column) + "\" in the header");
  }
  if (csv.values.rank() != 2 || csv.values.sizes()[1] != std::ssize(csv.header)) {
    throw Error(Category::shape_mismatch,
                "found values " + csv.values.type().to_string() + " under a header of " +
                    std::to_string(csv.header.size()) + " columns, expected a column for each");
  }
  const std::int64_t label_index = found - csv.header.begin();
  const std::int64_t rows = csv.values.sizes()[0];
  const std::int64_t columns = csv.values.sizes()[1];
  std::vector<double> features;
  std::vector<std::int32_t> labels;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const double value = csv.values.element(row * columns + column).as_double();
      if (column != label_index) {
        features.push_back(value * scale);
      } else if (value >= 0 && value < static_cast<double>(classes) && value == std::floor(value)) {
        labels.push_back(static_cast<std::int32_t>(value));
      } else {
        throw Error(Category::invalid_data,
                    "row " + std::to_string(row) + ", column \"" + std::string(label_column) +
                        "\": found the label " +
                        csv.values.element(row * columns + column).to_string() +
                        ", expected an integer in [0, " + std::to_string(classes) + ")");
      }
    }
  }
  return make_dataset(Tensor::from_doubles(csv.values.dtype(), {rows, columns - 1}, features),
                      Tensor::of<std::int32_t>({rows}, labels));
}

Dataset classification_from_arrays(const Tensor& inputs, const Tensor& labels, std::int64_t classes,
                                   double scale) {
  if (!is_integer(labels.dtype())) {
    throw Error(Category::dtype_mismatch,
                "found labels " + labels.type().to_string() + ", expected an integer dtype");
  }
  if (labels.rank() != 1) {
    throw Error(Category::shape_mismatch,
                "found labels " + labels.type().to_string() + ", expected [rows]");
  }
  std::vector<std::int32_t> converted;
  for (std::int64_t row = 0; row < labels.elements(); ++row) {
    const Literal label = labels.element(row);
    // As a double, so that u64 beyond i64 stays out of range.
    const double value = label.as_double();
    if (!(value >= 0 && value < static_cast<double>(classes))) {
      throw Error(Category::invalid_data, "row " + std::to_string(row) + ": found the label " +
                                              label.to_string() + ", expected one in [0, " +
                                              std::to_string(classes) + ")");
    }
    converted.push_back(static_cast<std::int32_t>(value));
  }
  std::vector<double> values = inputs.to_doubles();
  for (double& value : values) value *= scale;
  return make_dataset(
      Tensor::from_doubles(DType::f32, {inputs.sizes().begin(), inputs.sizes().end()}, values),
      Tensor::of<std::int32_t>({labels.elements()}, converted));
}

Tensor take_rows(const Tensor& tensor, std::span<const std::int64_t> indices) {
  leading_size(tensor, "a tensor");
  std::vector<std::int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
  sizes[0] = std::ssize(indices);
  Tensor result(tensor.dtype(), std::move(sizes));
  take_rows(tensor, indices, result);
  return result;
}

void take_rows(const Tensor& tensor, std::span<const std::int64_t> indices, Tensor& result) {
  const std::int64_t rows = leading_size(tensor, "a tensor");
  if (result.dtype() != tensor.dtype() || result.rank() != tensor.rank() ||
      result.sizes()[0] != std::ssize(indices) ||
      !std::ranges::equal(result.sizes().subspan(1), tensor.sizes().subspan(1))) {
    throw Error(
        result.dtype() != tensor.dtype() ? Category::dtype_mismatch : Category::shape_mismatch,
        "found a result of type " + result.type().to_string() + " for " +
            std::to_string(indices.size()) + " rows of " + tensor.type().to_string());
  }
  const std::size_t row_bytes =
      rows == 0 ? 0 : tensor.bytes().size() / static_cast<std::size_t>(rows);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= rows) {
      throw Error(Category::invalid_argument, "found row " + std::to_string(indices[i]) +
                                                  ", expected one in [0, " + std::to_string(rows) +
                                                  ")");
    }
    std::ranges::copy(
        tensor.bytes().subspan(static_cast<std::size_t>(indices[i]) * row_bytes, row_bytes),
        result.bytes().begin() + static_cast<std::ptrdiff_t>(i * row_bytes));
  }
}

double accuracy(const Tensor& scores, const Tensor& labels) {
  if (scores.rank() < 2 || labels.dtype() != DType::i32 ||
      !std::ranges::equal(labels.sizes(), scores.sizes().first(scores.sizes().size() - 1)) ||
      scores.sizes().back() == 0) {
    throw Error(Category::shape_mismatch,
                "found scores " + scores.type().to_string() + " and labels " +
                    labels.type().to_string() +
                    ", expected [..., classes] and i32 [...], at least one class");
  }
  if (labels.elements() == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto classes = static_cast<std::ptrdiff_t>(scores.sizes().back());
  const std::vector<double> values = scores.to_doubles();
  std::int64_t right = 0;
  for (std::int64_t row = 0; row < labels.elements(); ++row) {
    const auto begin = values.begin() + row * classes;
    const auto end = begin + classes;
    if (std::any_of(begin, end, [](double score) { return std::isnan(score); })) continue;
    right += std::max_element(begin, end) - begin == labels.element(row).as_int() ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(labels.elements());
}

}  // namespace mulgrad
