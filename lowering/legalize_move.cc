// Broadcasts and general products as plain products, and the movement around them.
#include <algorithm>
#include <numeric>
#include <vector>

#include "lowering/legalize_rules.h"

namespace mulgrad::legalize {
namespace {

Var ones(Builder& builder, DType dtype, Shape shape) {
  return fill(builder, Literal::one(dtype), std::move(shape));
}

// The axes of 0..rank-1 that are not among `taken`, ascending.
Axes others(std::int64_t rank, const Axes& taken) {
  Axes result;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (std::find(taken.begin(), taken.end(), i) == taken.end()) result.push_back(i);
  }
  return result;
}

Axes join(std::initializer_list<Axes> parts) {
  Axes result;
  for (const Axes& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

std::int64_t count(const Shape& shape, const Axes& axes) {
  return std::accumulate(
      axes.begin(), axes.end(), std::int64_t{1},
      [&](std::int64_t product, std::int64_t axis) { return product * shape[axis].size(); });
}

Shape pick(const Shape& shape, const Axes& axes) {
  Shape result;
  for (const std::int64_t axis : axes) result.push_back(shape[axis]);
  return result;
}

const Fill* as_fill(Var x) {
  if (x.id().is_input()) return nullptr;
  return std::get_if<Fill>(&x.builder().nodes()[static_cast<std::size_t>(x.id().index())].op);
}

Shape followed_by(Shape shape, std::int64_t rows, std::int64_t columns) {
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

// [batch * rows, inner] by [batch * inner, columns], one by one, below each other.
Var product_of_slices(Var lhs, Var rhs, std::int64_t batch) {
  const auto part = [batch](Var x, std::int64_t i) {
    const Dim width = x.shape()[1];
    const std::int64_t height = x.shape()[0].size() / batch;
    return slice(x, {i * height, 0}, {(i + 1) * height, width});
  };
  std::vector<Var> products;
  for (std::int64_t i = 0; i < batch; ++i) {
    const Var left = part(lhs, i);
    const Var right = part(rhs, i);
    products.push_back(matmul(left, right));
  }
  return concatenate(products, 0);
}

// [batch, rows, inner] by [inner, columns, batch]: one product of everything by everything. Where
// the batches differ anything may have come out, so zeros are selected in its place; the sum of a
// value and zeros is the value. `batch` as the last axis of the right side makes that sum one
// product, without a transpose of the large result.
Var product_of_blocks(Var lhs, Var rhs) {
  const std::int64_t batch = lhs.shape()[0].size();
  const std::int64_t rows = lhs.shape()[1].size();
  const std::int64_t inner = lhs.shape()[2].size();
  const std::int64_t columns = rhs.shape()[1].size();
  const std::int64_t block = rows * columns;
  const std::int64_t last = batch - 1;
  const Var left = reshape(lhs, {batch * rows, inner});
  const Var right = reshape(rhs, {inner, columns * batch});
  const Var all = reshape(matmul(left, right), {batch * block, batch});
  // (i, 1) by (1, last - j) is `last` where i is j. A mask of that size is no constant, as it may
  // be large. The numbers are below 128, so that every dtype has them.
  Tensor of_rows(lhs.dtype(), {batch * block, 2});
  Tensor of_columns(lhs.dtype(), {2, batch});
  dispatch(lhs.dtype(), [&]<class T>(std::type_identity<T>) {
    auto row = of_rows.data<T>().begin();
    for (std::int64_t i = 0; i < batch * block; ++i) {
      *row++ = static_cast<T>(i / block);
      *row++ = static_cast<T>(1);
    }
    auto column = of_columns.data<T>().begin();
    for (std::int64_t j = 0; j < batch; ++j) *column++ = static_cast<T>(1);
    for (std::int64_t j = 0; j < batch; ++j) *column++ = static_cast<T>(last - j);
  });
  const Var row_numbers = constant(lhs.builder(), std::move(of_rows));
  const Var column_numbers = constant(lhs.builder(), std::move(of_columns));
  const Var sums = matmul(row_numbers, column_numbers);
  const Var equal = compare(Comparison::EQ, sums, Literal::from_int(lhs.dtype(), last));
  const Var wanted = select(equal, all, 0);
  const Var right_ones = ones(lhs.builder(), lhs.dtype(), {batch, 1});
  return matmul(wanted, right_ones);
}

}  // namespace

std::int64_t elements(const Shape& shape) { return shape.elements().size(); }

bool keeps_order(const Shape& shape, const Axes& permutation) {
  std::int64_t last = -1;
  for (const std::int64_t axis : permutation) {
    if (shape[axis] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

Var reorder(Var x, const Axes& permutation) {
  if (keeps_order(x.shape(), permutation)) return reshape(x, pick(x.shape(), permutation));
  return transpose(x, permutation);
}

Var to_numbers(Var x) { return convert(x, DType::f32); }
Var to_logical(Var x) { return compare(Comparison::NE, x, 0); }

Var scalar_of(Var x) {
  return x.dtype() == DType::i1 ? to_logical(reshape(to_numbers(x), {})) : reshape(x, {});
}

Var broadcast(Var x, const Shape& shape, const Axes& dims) {
  if (x.dtype() == DType::i1) return to_logical(broadcast(to_numbers(x), shape, dims));
  if (elements(x.shape()) == elements(shape)) {
    // Nothing expands: the axes take their places, ascending, and the missing ones have size 1.
    Axes order = all_axes(x);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return dims[static_cast<std::size_t>(a)] < dims[static_cast<std::size_t>(b)];
    });
    return reshape(reorder(x, order), shape);
  }
  if (const Fill* source = as_fill(x)) return fill(x.builder(), source->value, shape);
  if (elements(x.shape()) == 1) {
    const Var scalar = scalar_of(x);
    return ones(x.builder(), x.dtype(), shape) * scalar;
  }
  // Of the result axes that are not of size 1, those that x has and those along which it repeats.
  Axes kept;
  Axes order;  // of x
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const auto found = std::find(dims.begin(), dims.end(), axis);
    if (found == dims.end()) continue;
    const std::int64_t from = found - dims.begin();
    order.push_back(from);
    if (x.shape()[from] != Dim(1)) kept.push_back(axis);
  }
  const Axes repeated = others(shape.rank(), kept);
  const std::int64_t size = elements(x.shape());
  const std::int64_t times = count(shape, repeated);
  const Var source = reorder(x, order);
  if (!keeps_order(shape, join({kept, repeated})) && keeps_order(shape, join({repeated, kept}))) {
    const Var row = reshape(source, {1, size});
    const Var left = ones(x.builder(), x.dtype(), {times, 1});
    return reshape(matmul(left, row), shape);
  }
  const Axes kept_first = join({kept, repeated});
  const Var column = reshape(source, {size, 1});
  const Var right = ones(x.builder(), x.dtype(), {1, times});
  const Var product = matmul(column, right);
  Axes back(kept_first.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    back[static_cast<std::size_t>(kept_first[i])] = static_cast<std::int64_t>(i);
  }
  if (keeps_order(shape, kept_first)) return reshape(product, shape);
  return transpose(reshape(product, pick(shape, kept_first)), back);
}

Var broadcast_operand(Var x, const Shape& shape) {
  return broadcast(x, shape, x.rank() == 0 ? Axes{} : all_axes(x));
}

Var dot(DotRoute route, Var lhs, Var rhs, const DotGeneral& op, const Shape& result) {
  // In the wider dtype every product is exact or rounded as the result's dtype asks.
  const DType dtype = byte_size(op.dtype) > byte_size(lhs.dtype()) ? op.dtype : lhs.dtype();
  if (lhs.dtype() != dtype) {
    lhs = convert(lhs, dtype);
    rhs = convert(rhs, dtype);
  }
  const Axes lhs_free = others(lhs.rank(), join({op.lhs_batch, op.lhs_contracting}));
  const Axes rhs_free = others(rhs.rank(), join({op.rhs_batch, op.rhs_contracting}));
  const Shape batch_dims = pick(lhs.shape(), op.lhs_batch);
  const std::int64_t batch = count(lhs.shape(), op.lhs_batch);
  const std::int64_t rows = count(lhs.shape(), lhs_free);
  const std::int64_t inner = count(lhs.shape(), op.lhs_contracting);
  const std::int64_t columns = count(rhs.shape(), rhs_free);
  lhs = reorder(lhs, join({op.lhs_batch, lhs_free, op.lhs_contracting}));
  rhs =
      reorder(rhs, route == DotRoute::blocks ? join({op.rhs_contracting, rhs_free, op.rhs_batch})
                                             : join({op.rhs_batch, op.rhs_contracting, rhs_free}));
  const auto product = [&] {
    if (route == DotRoute::batched) {
      const std::int64_t first = batch_dims.rank();
      Axes leading(op.lhs_batch.size());
      std::iota(leading.begin(), leading.end(), 0);
      const Var left = reshape(lhs, followed_by(batch_dims, rows, inner));
      const Var right = reshape(rhs, followed_by(batch_dims, inner, columns));
      return dot_general(left, right, {leading, leading, {first + 1}, {first}, dtype});
    }
    if (route == DotRoute::slices) {
      const Var left = reshape(lhs, {batch * rows, inner});
      const Var right = reshape(rhs, {batch * inner, columns});
      return product_of_slices(left, right, batch);
    }
    if (route == DotRoute::blocks) {
      const Var left = reshape(lhs, {batch, rows, inner});
      const Var right = reshape(rhs, {inner, columns, batch});
      return product_of_blocks(left, right);
    }
    const Var left = reshape(lhs, batch == 1 ? Shape{rows, inner} : Shape{0, 1});
    const Var right = reshape(rhs, batch == 1 ? Shape{inner, columns} : Shape{1, 0});
    return matmul(left, right);
  };
  Var value = product();
  if (value.dtype() != op.dtype) value = convert(value, op.dtype);
  return reshape(value, result);
}

}  // namespace mulgrad::legalize
