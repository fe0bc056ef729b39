#include "backends/cpu/layouts.h"

#include <algorithm>
#include <utility>

namespace mulgrad::cpu {
namespace {

// How far back a view looks for the memory that it lies in.
constexpr int kMaxMovements = 16;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Axes that two arrays share: their sizes and the strides in each.
struct SharedAxis {
  std::int64_t size;
  std::int64_t first;
  std::int64_t second;
};

// As one axis, or nothing where an array does not lie so.
std::optional<SharedAxis> as_one(const std::vector<SharedAxis>& axes) {
  SharedAxis whole{1, 0, 0};
  for (const SharedAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (whole.size != 1 &&
        (whole.first != axis.size * axis.first || whole.second != axis.size * axis.second)) {
      return std::nullopt;
    }
    whole = {whole.size * axis.size, axis.first, axis.second};
  }
  return whole;
}

// Where an axis has size 1 its stride does not matter, but the kernels want to see one that fits.
std::optional<MatrixLayout> matrix(std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
                                   std::int64_t column_stride) {
  if (columns == 1 && rows == 1) return MatrixLayout{{}, 1, 1};
  if (columns == 1) column_stride = row_stride == 1 ? rows : 1;
  if (rows == 1) row_stride = column_stride == 1 ? columns : 1;
  const auto least = [](std::int64_t stride, std::int64_t size) { return stride >= size; };
  if (column_stride == 1 && least(row_stride, columns)) return MatrixLayout{{}, row_stride, 1};
  if (row_stride == 1 && least(column_stride, rows)) return MatrixLayout{{}, 1, column_stride};
  return std::nullopt;
}

MatrixLayout packed(std::int64_t columns) { return {{}, std::max<std::int64_t>(columns, 1), 1}; }

Axes free_axes(std::int64_t rank, const Axes& batch, const Axes& contracting) {
  Axes axes;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::count(batch, axis) == 0 && std::ranges::count(contracting, axis) == 0) {
      axes.push_back(axis);
    }
  }
  return axes;
}

}  // namespace

std::optional<Strides> reshaped_strides(const std::vector<std::int64_t>& from,
                                        const Strides& strides,
                                        const std::vector<std::int64_t>& to) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // size and stride
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1) axes.emplace_back(from[i], strides[i]);
  }
  Strides result(to.size(), 1);
  std::size_t next = 0;
  std::size_t axis = 0;
  while (axis < to.size()) {
    if (to[axis] == 1) {
      ++axis;
      continue;
    }
    if (next == axes.size()) return std::nullopt;
    // The fewest axes on both sides that have as many elements.
    std::size_t old_end = next + 1;
    std::size_t new_end = axis + 1;
    std::int64_t old_size = axes[next].first;
    std::int64_t new_size = to[axis];
    while (old_size != new_size) {
      if (new_size < old_size) {
        if (new_end == to.size()) return std::nullopt;
        new_size *= to[new_end++];
      } else {
        if (old_end == axes.size()) return std::nullopt;
        old_size *= axes[old_end++].first;
      }
    }
    for (std::size_t i = next; i + 1 < old_end; ++i) {
      if (axes[i].second != axes[i + 1].first * axes[i + 1].second) return std::nullopt;
    }
    std::int64_t stride = axes[old_end - 1].second;
    for (std::size_t i = new_end; i-- > axis;) {
      result[i] = stride;
      stride *= to[i];
    }
    next = old_end;
    axis = new_end;
  }
  return result;
}

View view_of(const Program& program, ValueId value) {
  std::vector<ValueId> chain{value};  // the value first
  while (static_cast<int>(chain.size()) <= kMaxMovements && chain.back().is_node()) {
    const Node& node = program.node(chain.back());
    if (!std::holds_alternative<Reshape>(node.op) && !std::holds_alternative<Transpose>(node.op)) {
      break;
    }
    chain.push_back(node.operands[0].value());
  }
  View view{chain.back(), row_major(program.type(chain.back()).shape.sizes())};
  for (std::size_t i = chain.size() - 1; i-- > 0;) {
    const Node& node = program.node(chain[i]);
    if (const auto* op = std::get_if<Transpose>(&node.op)) {
      Strides moved;
      for (const std::int64_t axis : op->permutation) moved.push_back(view.strides[at(axis)]);
      view.strides = std::move(moved);
      continue;
    }
    const std::vector<std::int64_t> sizes = node.type.shape.sizes();
    if (auto strides =
            reshaped_strides(program.type(chain[i + 1]).shape.sizes(), view.strides, sizes)) {
      view.strides = *std::move(strides);
    } else {
      // What is reshaped is made in the order of its elements first.
      view = {chain[i + 1], row_major(sizes)};
    }
  }
  return view;
}

std::optional<Strides> operand_strides(const Program& program, const Node& movement,
                                       const Strides& strides) {
  const std::vector<std::int64_t> sizes = program.type(movement.operands[0].value()).shape.sizes();
  if (const auto* op = std::get_if<Transpose>(&movement.op)) {
    Strides result(strides.size());
    for (std::size_t i = 0; i < strides.size(); ++i) result[at(op->permutation[i])] = strides[i];
    return result;
  }
  return reshaped_strides(movement.type.shape.sizes(), strides, sizes);
}

std::optional<LaidOutProduct> lay_out(const Program& program, const Node& node,
                                      const Strides& result) {
  const auto& op = std::get<DotGeneral>(node.op);
  const ValueId left = node.operands[0].value();
  const ValueId right = node.operands[1].value();
  const View lhs = view_of(program, left);
  const View rhs = view_of(program, right);
  const std::vector<std::int64_t> left_sizes = program.type(left).shape.sizes();
  const std::vector<std::int64_t> right_sizes = program.type(right).shape.sizes();
  const Axes rows = free_axes(std::ssize(left_sizes), op.lhs_batch, op.lhs_contracting);
  const Axes columns = free_axes(std::ssize(right_sizes), op.rhs_batch, op.rhs_contracting);

  std::vector<SharedAxis> m, n, k;
  std::size_t place = op.lhs_batch.size();  // in the result
  for (const std::int64_t axis : rows) {
    m.push_back({left_sizes[at(axis)], lhs.strides[at(axis)], result[place++]});
  }
  for (const std::int64_t axis : columns) {
    n.push_back({right_sizes[at(axis)], rhs.strides[at(axis)], result[place++]});
  }
  for (std::size_t i = 0; i < op.lhs_contracting.size(); ++i) {
    const std::int64_t axis = op.lhs_contracting[i];
    k.push_back(
        {left_sizes[at(axis)], lhs.strides[at(axis)], rhs.strides[at(op.rhs_contracting[i])]});
  }
  // Sums may be taken in any order of the axes.
  std::ranges::stable_sort(k, std::greater<>(), &SharedAxis::first);

  LaidOutProduct product{{}, lhs.base, rhs.base};
  ProductSpec& spec = product.spec;
  spec.dtype = op.dtype;
  const auto sizes_of = [](const std::vector<SharedAxis>& axes) {
    std::int64_t size = 1;
    for (const SharedAxis& axis : axes) size *= axis.size;
    return size;
  };
  spec.m = sizes_of(m);
  spec.n = sizes_of(n);
  spec.k = sizes_of(k);
  std::int64_t batch = 1;
  for (const std::int64_t axis : op.lhs_batch) batch *= left_sizes[at(axis)];
  if (batch == 0 || spec.m == 0 || spec.n == 0 || spec.k == 0) {
    spec.batch = {batch};
    spec.lhs = packed(spec.k);
    spec.rhs = packed(spec.n);
    spec.result = packed(spec.n);
    spec.lhs.batch_strides = {spec.m * spec.k};
    spec.rhs.batch_strides = {spec.k * spec.n};
    spec.result.batch_strides = {spec.m * spec.n};
    return product;
  }
  auto one_m = as_one(m);
  auto one_n = as_one(n);
  const auto one_k = as_one(k);
  if (!one_m || !one_n || !one_k) return std::nullopt;
  // [m,k] x [k,n], or where the result lies the other way its transpose: [n,k] x [k,m].
  const auto written = matrix(spec.m, one_m->second, spec.n, one_n->second);
  if (!written) return std::nullopt;
  const bool swapped = written->column_stride != 1;
  auto read_left = matrix(spec.m, one_m->first, spec.k, one_k->first);
  auto read_right = matrix(spec.k, one_k->second, spec.n, one_n->first);
  if (!read_left || !read_right) return std::nullopt;
  spec.lhs = *read_left;
  spec.rhs = *read_right;
  spec.result = *written;
  for (std::size_t i = 0; i < op.lhs_batch.size(); ++i) {
    const std::int64_t size = left_sizes[at(op.lhs_batch[i])];
    if (size == 1) continue;
    const std::int64_t a = lhs.strides[at(op.lhs_batch[i])];
    const std::int64_t b = rhs.strides[at(op.rhs_batch[i])];
    const std::int64_t c = result[i];
    if (!spec.batch.empty() && spec.lhs.batch_strides.back() == size * a &&
        spec.rhs.batch_strides.back() == size * b && spec.result.batch_strides.back() == size * c) {
      spec.batch.back() *= size;
      spec.lhs.batch_strides.back() = a;
      spec.rhs.batch_strides.back() = b;
      spec.result.batch_strides.back() = c;
      continue;
    }
    spec.batch.push_back(size);
    spec.lhs.batch_strides.push_back(a);
    spec.rhs.batch_strides.push_back(b);
    spec.result.batch_strides.push_back(c);
  }
  if (swapped) {
    std::swap(spec.m, spec.n);
    std::swap(spec.lhs, spec.rhs);
    std::swap(product.lhs, product.rhs);
    for (MatrixLayout* layout : {&spec.lhs, &spec.rhs, &spec.result}) {
      std::swap(layout->row_stride, layout->column_stride);
    }
  }
  return product;
}

}  // namespace mulgrad::cpu
