// What the constants of legalized programs hold, and how shapes fall into parts: for forms.cc
// alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/op.h"
#include "core/tensor.h"

namespace mulgrad::cpu {

// The shift k of a rank-2 [n,n] that moves column (j + k) % n to column j; nothing for any other.
std::optional<std::int64_t> shift_of(const Tensor& matrix);

// Whether a [n,1] picks one column.
bool picks_a_column(const Tensor& matrix);

// Do the numbers, [rows, batch] of f32 or f64, hold batch - 1 exactly where row / block is the
// column? The second form asks it of the product of [rows, 2], which is to hold (row / block, 1),
// and [2, batch], which is to hold 1 above batch - 1 - column.
bool is_block_mask(const Tensor& numbers, std::int64_t block, std::int64_t batch);
bool is_block_mask(const Tensor& rows, const Tensor& columns, std::int64_t block,
                   std::int64_t batch);

// Consecutive axes of the shape whose sizes multiply to the given ones, in order; what is left over
// at the end, axes of size 1, goes to the last. Nothing where the shape has no such parts.
std::optional<std::array<Axes, 3>> parts_of(const Shape& shape,
                                            const std::array<std::int64_t, 3>& sizes);

}  // namespace mulgrad::cpu
