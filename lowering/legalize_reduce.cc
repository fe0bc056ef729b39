// Reductions as products with ones, and the extrema. Operands are named before they are combined:
// the order in which a call evaluates its arguments, and so emits them, is up to the compiler.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "lowering/legalize_rules.h"

namespace mulgrad::legalize {
namespace {

Var ones(Builder& builder, DType dtype, std::int64_t rows, std::int64_t columns) {
  return fill(builder, Literal::one(dtype), {rows, columns});
}

bool contains(const Axes& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Shape without(const Shape& shape, const Axes& axes) {
  Shape result;
  for (std::int64_t i = 0; i < shape.rank(); ++i) {
    if (!contains(axes, i)) result.push_back(shape[i]);
  }
  return result;
}

std::int64_t count(const Shape& shape, const Axes& axes) {
  return std::accumulate(
      axes.begin(), axes.end(), std::int64_t{1},
      [&](std::int64_t product, std::int64_t axis) { return product * shape[axis].size(); });
}

// Reduces one axis at a time with `fold`, which leaves the axis at size 1.
Var axis_by_axis(Var x, const Axes& axes, const std::function<Var(Var, std::int64_t)>& fold) {
  const Shape result = without(x.shape(), axes);
  for (const std::int64_t axis : axes) {
    if (x.shape()[axis] != Dim(1)) x = fold(x, axis);
  }
  return reshape(x, result);
}

Var cut(Var x, std::int64_t axis, std::int64_t start, std::int64_t limit) {
  std::vector<std::int64_t> from(static_cast<std::size_t>(x.rank()));
  const Shape shape = x.shape();
  std::vector<Dim> to(shape.begin(), shape.end());
  from[static_cast<std::size_t>(axis)] = start;
  to[static_cast<std::size_t>(axis)] = limit;
  return slice(x, std::move(from), std::move(to));
}

// Halves that overlap in the middle element where the size is odd: right for an idempotent fold.
Var fold_halves(Var x, std::int64_t axis, const std::function<Var(Var, Var)>& fold) {
  for (std::int64_t size = x.shape()[axis].size(); size > 1; size = x.shape()[axis].size()) {
    const std::int64_t half = (size + 1) / 2;
    const Var low = cut(x, axis, 0, half);
    const Var high = cut(x, axis, size - half, size);
    x = fold(low, high);
  }
  return x;
}

Var identity(Var x, const Axes& axes, const Literal& value) {
  return fill(x.builder(), value, without(x.shape(), axes));
}

// Row-major 0/1 matrix with a one at (row(j), j).
Var selection(Builder& builder, DType dtype, std::int64_t rows, std::int64_t columns,
              const std::function<std::int64_t(std::int64_t)>& row) {
  Tensor matrix(dtype, {rows, columns});
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    const auto values = matrix.data<T>();
    for (std::int64_t j = 0; j < columns; ++j) {
      values[static_cast<std::size_t>(row(j) * columns + j)] = static_cast<T>(1);
    }
  });
  return constant(builder, std::move(matrix));
}

// The row maxima of finite values: after the shifts by 1, 2 ... 2^(k-1) every element holds the
// maximum of the 2^k elements from it on, cyclically; once 2^k >= n, of its whole row.
Var fold_shifts(Var x, std::int64_t axis) {
  const std::int64_t size = x.shape()[axis].size();
  Axes permutation = all_axes(x);
  permutation.erase(permutation.begin() + axis);
  permutation.push_back(axis);
  Shape folded = x.shape();
  folded[axis] = 1;
  const std::int64_t rows = elements(folded);
  Var rest = reshape(reorder(x, permutation), {rows, size});
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    const Var matrix = selection(x.builder(), x.dtype(), size, size,
                                 [&](std::int64_t column) { return (column + shift) % size; });
    rest = maximum(rest, matmul(rest, matrix));
  }
  const Var first =
      selection(x.builder(), x.dtype(), size, 1, [](std::int64_t) { return std::int64_t{0}; });
  return reshape(matmul(rest, first), folded);
}

Var positive(Var count) { return compare(Comparison::GT, count, 0); }

}  // namespace

// Axes of size 1 do not matter for where elements lie, so a block of axes is leading or trailing
// when it is among the others. Both: one product suffices, and from the right.
Var sum_of(Var x, const Axes& axes) {
  const Shape result = without(x.shape(), axes);
  const std::int64_t terms = count(x.shape(), axes);
  if (terms == 1) return reshape(x, result);
  const std::int64_t kept = elements(result);
  Axes kept_first;
  for (std::int64_t i = 0; i < x.rank(); ++i) {
    if (!contains(axes, i)) kept_first.push_back(i);
  }
  Axes kept_last = axes;
  kept_last.insert(kept_last.end(), kept_first.begin(), kept_first.end());
  kept_first.insert(kept_first.end(), axes.begin(), axes.end());
  if (!keeps_order(x.shape(), kept_first) && keeps_order(x.shape(), kept_last)) {
    const Var columns = reshape(x, {terms, kept});
    const Var left = ones(x.builder(), x.dtype(), 1, terms);
    return reshape(matmul(left, columns), result);
  }
  const Var rows = reshape(reorder(x, kept_first), {kept, terms});
  const Var right = ones(x.builder(), x.dtype(), terms, 1);
  return reshape(matmul(rows, right), result);
}

Var mean_of(const Target& target, Var x, const Mean& op) {
  const std::int64_t terms = count(x.shape(), op.axes);
  const bool reduces = target.has(OpKind::Reduce);
  Var result = reduces ? sum(x, op.axes) : sum_of(x, op.axes);
  if (terms != 1) result = result / Literal::from_int(x.dtype(), terms);
  if (!op.keepdims) return result;
  Shape kept = x.shape();
  for (const std::int64_t axis : op.axes) kept[axis] = 1;
  return reshape(result, kept);
}

// A sum of zeros and ones is rounded at worst, never to 0: so its size does not matter.
Var any_of(Var x, const Axes& axes) { return positive(sum_of(to_numbers(x), axes)); }
Var all_of(Var x, const Axes& axes) { return logical_not(any_of(logical_not(x), axes)); }

Var max_by_slices(Var x, const Axes& axes) {
  if (count(x.shape(), axes) == 0) {
    return identity(x, axes,
                    is_float(x.dtype()) ? Literal::infinity(x.dtype(), true)
                                        : Literal::lowest_finite(x.dtype()));
  }
  return axis_by_axis(x, axes, [](Var y, std::int64_t axis) {
    return fold_halves(y, axis, [](Var a, Var b) { return maximum(a, b); });
  });
}

Var min_by_slices(Var x, const Axes& axes) {
  if (count(x.shape(), axes) == 0) {
    return identity(
        x, axes,
        is_float(x.dtype()) ? Literal::infinity(x.dtype()) : Literal::largest_finite(x.dtype()));
  }
  return axis_by_axis(x, axes, [](Var y, std::int64_t axis) {
    return fold_halves(y, axis, [](Var a, Var b) { return minimum(a, b); });
  });
}

Var product_by_slices(Var x, const Axes& axes) {
  if (count(x.shape(), axes) == 0) return identity(x, axes, Literal::one(x.dtype()));
  return axis_by_axis(x, axes, [](Var y, std::int64_t axis) {
    std::vector<Var> odd;  // what does not pair up is multiplied in at the end
    for (std::int64_t size = y.shape()[axis].size(); size > 1; size = y.shape()[axis].size()) {
      const std::int64_t half = size / 2;
      if (size % 2 != 0) odd.push_back(cut(y, axis, size - 1, size));
      const Var low = cut(y, axis, 0, half);
      const Var high = cut(y, axis, half, 2 * half);
      y = low * high;
    }
    for (const Var& factor : odd) y = y * factor;
    return y;
  });
}

// 0 * inf is NaN, so the shifts see finite values only; what was not finite is put back by the sum
// of a mark per element: 1 for a finite one, 0 for -inf, and +inf and NaN for themselves. It is the
// result where it is not finite, and 0 where all elements are -inf.
Var max_by_shifts(Var x, const Axes& axes) {
  const Literal low = Literal::infinity(x.dtype(), true);
  const std::int64_t terms = count(x.shape(), axes);
  if (terms == 0) return identity(x, axes, low);
  if (terms == 1) return reshape(x, without(x.shape(), axes));
  const Var finite = is_finite(x);
  const Var guarded = select(finite, x, Literal::lowest_finite(x.dtype()));
  const Var largest = axis_by_axis(guarded, axes, fold_shifts);
  const Var marks = select(finite, Literal::one(x.dtype()), maximum(x, 0));
  const Var mark = sum_of(marks, axes);
  const Var some_finite = select(positive(mark), largest, low);
  return select(is_finite(mark), some_finite, mark);
}

Var min_by_shifts(Var x, const Axes& axes) { return -max_by_shifts(-x, axes); }

}  // namespace mulgrad::legalize
