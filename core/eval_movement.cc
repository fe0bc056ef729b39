#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/eval.h"

namespace mulgrad::eval {

Strides row_major_strides(Sizes sizes) {
  Strides strides(sizes.size(), 1);
  for (std::size_t axis = sizes.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * sizes[axis];
  }
  return strides;
}

std::vector<std::int64_t> offsets(Sizes sizes, const Strides& strides, std::int64_t start) {
  std::vector<std::int64_t> result = {start};
  // From the outermost axis inwards, every offset becomes one per index of the axis.
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    std::vector<std::int64_t> next;
    next.reserve(result.size() * static_cast<std::size_t>(sizes[axis]));
    for (const std::int64_t offset : result) {
      for (std::int64_t i = 0; i < sizes[axis]; ++i) next.push_back(offset + i * strides[axis]);
    }
    result = std::move(next);
  }
  return result;
}

Tensor pick(const Tensor& x, std::vector<std::int64_t> sizes, std::span<const std::int64_t> from) {
  Tensor result(x.dtype(), std::move(sizes));
  const auto width = static_cast<std::size_t>(byte_size(x.dtype()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::memcpy(&result.bytes()[i * width], &x.bytes()[static_cast<std::size_t>(from[i]) * width],
                width);
  }
  return result;
}

void place(const Tensor& x, std::span<const std::int64_t> to, Tensor& result) {
  const auto width = static_cast<std::size_t>(byte_size(x.dtype()));
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::memcpy(&result.bytes()[static_cast<std::size_t>(to[i]) * width], &x.bytes()[i * width],
                width);
  }
}

Tensor broadcast(const Tensor& x, std::vector<std::int64_t> sizes, const Axes& dims) {
  const Strides operand_strides = row_major_strides(x.sizes());
  Strides strides(sizes.size(), 0);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (x.sizes()[axis] != 1) strides[static_cast<std::size_t>(dims[axis])] = operand_strides[axis];
  }
  const std::vector<std::int64_t> from = offsets(sizes, strides);
  return pick(x, std::move(sizes), from);
}

Tensor evaluate(const Fill& op, const Type& type, Operands) {
  return Tensor::filled(op.value, type.shape.sizes());
}

Tensor evaluate(const Constant& op, const Type&, Operands) { return *op.value; }

Tensor evaluate(const Iota& op, const Type& type, Operands) {
  return dispatch(type.dtype, [&]<class T>(std::type_identity<T>) {
    Tensor result(type.dtype, type.shape.sizes());
    Strides strides(static_cast<std::size_t>(result.rank()), 0);
    strides[static_cast<std::size_t>(op.dimension)] = 1;
    const std::vector<std::int64_t> indices = offsets(result.sizes(), strides);
    std::ranges::transform(indices, result.data<T>().begin(),
                           [](std::int64_t index) { return convert_to<T>(index); });
    return result;
  });
}

Tensor evaluate(const BroadcastInDim& op, const Type& type, Operands x) {
  return broadcast(*x[0], type.shape.sizes(), op.dims);
}

Tensor evaluate(const Reshape&, const Type& type, Operands x) {
  std::vector<std::int64_t> from(static_cast<std::size_t>(x[0]->elements()));
  std::iota(from.begin(), from.end(), 0);
  return pick(*x[0], type.shape.sizes(), from);
}

Tensor evaluate(const Transpose& op, const Type& type, Operands x) {
  const Strides operand_strides = row_major_strides(x[0]->sizes());
  Strides strides;
  for (const std::int64_t axis : op.permutation) {
    strides.push_back(operand_strides[static_cast<std::size_t>(axis)]);
  }
  const std::vector<std::int64_t> sizes = type.shape.sizes();
  return pick(*x[0], sizes, offsets(sizes, strides));
}

Tensor evaluate(const Slice& op, const Type& type, Operands x) {
  Strides strides = row_major_strides(x[0]->sizes());
  std::int64_t start = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    start += op.start[axis] * strides[axis];
    strides[axis] *= op.stride[axis];
  }
  const std::vector<std::int64_t> sizes = type.shape.sizes();
  return pick(*x[0], sizes, offsets(sizes, strides, start));
}

Tensor evaluate(const Concatenate& op, const Type& type, Operands x) {
  Tensor result(type.dtype, type.shape.sizes());
  const Strides strides = row_major_strides(result.sizes());
  const auto axis = static_cast<std::size_t>(op.dimension);
  std::int64_t before = 0;  // along the axis
  for (const Tensor* part : x) {
    place(*part, offsets(part->sizes(), strides, before * strides[axis]), result);
    before += part->sizes()[axis];
  }
  return result;
}

Tensor evaluate(const Pad& op, const Type& type, Operands x) {
  Tensor result = Tensor::filled(x[1]->element(0), type.shape.sizes());
  const Strides from_strides = row_major_strides(x[0]->sizes());
  const Strides to_strides = row_major_strides(result.sizes());
  // Operand index i lands at low + i * (interior + 1); negative padding crops what leaves the
  // result. Only what stays is listed.
  std::vector<std::int64_t> from = {0};
  std::vector<std::int64_t> to = {0};
  for (std::size_t axis = 0; axis < to_strides.size(); ++axis) {
    std::vector<std::int64_t> next_from;
    std::vector<std::int64_t> next_to;
    for (std::size_t k = 0; k < from.size(); ++k) {
      for (std::int64_t i = 0; i < x[0]->sizes()[axis]; ++i) {
        const std::int64_t index = op.low[axis] + i * (op.interior[axis] + 1);
        if (index < 0 || index >= result.sizes()[axis]) continue;
        next_from.push_back(from[k] + i * from_strides[axis]);
        next_to.push_back(to[k] + index * to_strides[axis]);
      }
    }
    from = std::move(next_from);
    to = std::move(next_to);
  }
  place(pick(*x[0], {std::ssize(from)}, from), to, result);
  return result;
}

}  // namespace mulgrad::eval
