// Rows of inputs with their targets, in host memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "core/csv.h"
#include "core/tensor.h"

namespace mulgrad {

// inputs: [rows, ...] of a float dtype, or ids in i32, as embeddings take them. targets: class
// labels in i32, [rows] or, for rows that are sequences, [rows, ...]; or [rows, ...] of a float
// dtype, that of float inputs, for regression.
struct Dataset {
  Tensor inputs;
  Tensor targets;

  std::int64_t rows() const;  // throws shape_mismatch for inputs of rank 0
  // The rows at `indices`, in that order.
  Dataset take(std::span<const std::int64_t> indices) const;
  // A seeded shuffle, then the first part and a held-out part of floor(fraction * rows) rows;
  // throws invalid_argument unless 0 <= fraction <= 1.
  std::pair<Dataset, Dataset> split(double held_out_fraction, std::uint64_t seed) const;
};

// Throws shape_mismatch unless both tensors have a first axis of the same size, and dtype_mismatch
// unless the dtypes are as Dataset says.
Dataset make_dataset(Tensor inputs, Tensor targets);

// One CSV column holds class labels, every other one is a feature, multiplied by `scale`. Throws
// invalid_data naming row and column for a label that is no integer in [0, classes), and for a
// header without the column; shape_mismatch for values that are not [rows, columns of the header].
Dataset classification_from_csv(const Csv& csv, std::string_view label_column, std::int64_t classes,
                                double scale = 1.0);

// Class labels [rows] of any integer dtype, as IDX and npy files have them, beside inputs [rows,
// ...] of any dtype; inputs are converted to f32 and multiplied by `scale`. Throws dtype_mismatch
// for labels of another dtype, shape_mismatch for other ranks or unequal row counts, invalid_data
// naming the row of a label outside [0, classes).
Dataset classification_from_arrays(const Tensor& inputs, const Tensor& labels, std::int64_t classes,
                                   double scale = 1.0);

// Rows of `tensor` at `indices`: [indices.size(), ...]. Throws shape_mismatch for a tensor of rank
// 0, and invalid_argument for an index that is no row.
Tensor take_rows(const Tensor& tensor, std::span<const std::int64_t> indices);
// The same into `result`, a tensor of that type, without allocating; throws shape_mismatch or
// dtype_mismatch for another type.
void take_rows(const Tensor& tensor, std::span<const std::int64_t> indices, Tensor& result);

// The fraction of rows of `scores` [..., classes] whose first largest entry is the label, one of
// [...]; a row that holds a NaN has none. NaN for no rows. Throws shape_mismatch for scores of rank
// below 2, labels that are not one per row, no class, and labels that are not i32.
double accuracy(const Tensor& scores, const Tensor& labels);

}  // namespace mulgrad
