#include <algorithm>

#include "core/eval.h"

namespace mulgrad::eval {
namespace {

// What a reduction over no element gives.
template <class T>
T identity(Reduction kind) {
  switch (kind) {
    case Reduction::sum:
    case Reduction::or_:
      return convert_to<T>(0);
    case Reduction::product:
      return convert_to<T>(1);
    case Reduction::and_:
      return convert_to<T>(std::int64_t{-1});  // all bits; true
    case Reduction::max:
      if constexpr (is_float_type<T>) return convert_to<T>(-INFINITY);
      return Literal::lowest_finite(dtype_of<T>).template as<T>();
    case Reduction::min:
      if constexpr (is_float_type<T>) return convert_to<T>(INFINITY);
      return Literal::largest_finite(dtype_of<T>).template as<T>();
  }
  internal_check_failed("a reduction", __FILE__, __LINE__);
}

template <class A>
A combine(Reduction kind, A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    if (kind == Reduction::and_) return a & b;
    if (kind == Reduction::or_) return a | b;
  }
  return kind == Reduction::sum ? a + b : a * b;
}

// Splits the axes of an operand: offsets of the kept ones, and of the reduced ones from there.
struct Split {
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> reduced;
};

Split split(const Tensor& x, const Axes& axes) {
  const Strides strides = row_major_strides(x.sizes());
  Strides kept_strides;
  Strides reduced_strides;
  std::vector<std::int64_t> kept_sizes;
  std::vector<std::int64_t> reduced_sizes;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const bool reduced = std::ranges::count(axes, static_cast<std::int64_t>(axis)) > 0;
    (reduced ? reduced_sizes : kept_sizes).push_back(x.sizes()[axis]);
    (reduced ? reduced_strides : kept_strides).push_back(strides[axis]);
  }
  return {offsets(kept_sizes, kept_strides), offsets(reduced_sizes, reduced_strides)};
}

// In row-major order of the reduced axes, from the first element on: a single element is its own
// reduction, -0 included.
template <class T>
T reduce_one(Reduction kind, std::span<const T> x, std::int64_t base,
             std::span<const std::int64_t> reduced) {
  if (reduced.empty()) return identity<T>(kind);
  const auto at = [&](std::size_t i) { return x[static_cast<std::size_t>(base + reduced[i])]; };
  if (kind == Reduction::max || kind == Reduction::min) {
    Wide<T> best = widen(at(0));
    for (std::size_t i = 1; i < reduced.size(); ++i) {
      best = kind == Reduction::max ? larger(best, widen(at(i))) : smaller(best, widen(at(i)));
    }
    return narrow<T>(best);
  }
  using A = Accumulator<T>;
  A total = static_cast<A>(at(0));
  for (std::size_t i = 1; i < reduced.size(); ++i) {
    total = combine(kind, total, static_cast<A>(at(i)));
  }
  if constexpr (is_float_type<T>) {
    return convert_to<T>(static_cast<double>(total));
  } else {
    return static_cast<T>(total);
  }
}

template <class T>
Tensor reduce(Reduction kind, const Tensor& x, const Axes& axes, std::vector<std::int64_t> sizes) {
  const Split parts = split(x, axes);
  Tensor result(dtype_of<T>, std::move(sizes));
  for (std::size_t i = 0; i < parts.kept.size(); ++i) {
    result.data<T>()[i] = reduce_one<T>(kind, x.data<T>(), parts.kept[i], parts.reduced);
  }
  return result;
}

// The offsets of both sides of a product along some of their axes.
struct SideOffsets {
  std::vector<std::int64_t> lhs;
  std::vector<std::int64_t> rhs;
};

// A is what the products are summed in.
template <class T, class A>
std::vector<A> products(const Tensor& lhs, const Tensor& rhs, const SideOffsets& free,
                        const SideOffsets& contracting) {
  const std::span<const T> x = lhs.data<T>();
  const std::span<const T> y = rhs.data<T>();
  std::vector<A> result;
  result.reserve(free.lhs.size());
  for (std::size_t i = 0; i < free.lhs.size(); ++i) {
    A total = 0;
    for (std::size_t k = 0; k < contracting.lhs.size(); ++k) {
      total += static_cast<A>(x[static_cast<std::size_t>(free.lhs[i] + contracting.lhs[k])]) *
               static_cast<A>(y[static_cast<std::size_t>(free.rhs[i] + contracting.rhs[k])]);
    }
    result.push_back(total);
  }
  return result;
}

}  // namespace

Tensor evaluate(const Reduce& op, const Type& type, Operands x) {
  return dispatch(type.dtype, [&]<class T>(std::type_identity<T>) {
    return reduce<T>(op.kind, *x[0], op.axes, type.shape.sizes());
  });
}

Tensor evaluate(const Mean& op, const Type& type, Operands x) {
  return dispatch(type.dtype, [&]<class T>(std::type_identity<T>) -> Tensor {
    if constexpr (is_float_type<T>) {
      std::int64_t count = 1;
      for (const std::int64_t axis : op.axes) {
        count *= x[0]->sizes()[static_cast<std::size_t>(axis)];
      }
      const auto divisor = static_cast<double>(convert_to<T>(count));
      Tensor result = reduce<T>(Reduction::sum, *x[0], op.axes, type.shape.sizes());
      for (T& sum : result.data<T>()) sum = convert_to<T>(static_cast<double>(sum) / divisor);
      return result;
    }
    internal_check_failed("a mean of floats", __FILE__, __LINE__);
  });
}

Tensor evaluate(const DotGeneral& op, const Type& type, Operands x) {
  const Tensor& lhs = *x[0];
  const Tensor& rhs = *x[1];
  const Strides lhs_strides = row_major_strides(lhs.sizes());
  const Strides rhs_strides = row_major_strides(rhs.sizes());
  // A stride of 0 where an axis belongs to the other side alone.
  struct {
    std::vector<std::int64_t> sizes;
    Strides lhs;
    Strides rhs;
    void push_back(std::int64_t size, std::int64_t left, std::int64_t right) {
      sizes.push_back(size);
      lhs.push_back(left);
      rhs.push_back(right);
    }
  } free, contracting;
  const auto index = [](std::int64_t axis) { return static_cast<std::size_t>(axis); };
  const auto has = [](const Axes& axes, std::int64_t axis) {
    return std::ranges::count(axes, axis) > 0;
  };
  for (std::size_t i = 0; i < op.lhs_batch.size(); ++i) {
    free.push_back(lhs.sizes()[index(op.lhs_batch[i])], lhs_strides[index(op.lhs_batch[i])],
                   rhs_strides[index(op.rhs_batch[i])]);
  }
  for (std::int64_t axis = 0; axis < lhs.rank(); ++axis) {
    if (has(op.lhs_batch, axis) || has(op.lhs_contracting, axis)) continue;
    free.push_back(lhs.sizes()[index(axis)], lhs_strides[index(axis)], 0);
  }
  for (std::int64_t axis = 0; axis < rhs.rank(); ++axis) {
    if (has(op.rhs_batch, axis) || has(op.rhs_contracting, axis)) continue;
    free.push_back(rhs.sizes()[index(axis)], 0, rhs_strides[index(axis)]);
  }
  for (std::size_t i = 0; i < op.lhs_contracting.size(); ++i) {
    contracting.push_back(lhs.sizes()[index(op.lhs_contracting[i])],
                          lhs_strides[index(op.lhs_contracting[i])],
                          rhs_strides[index(op.rhs_contracting[i])]);
  }
  const SideOffsets rows{offsets(free.sizes, free.lhs), offsets(free.sizes, free.rhs)};
  const SideOffsets terms{offsets(contracting.sizes, contracting.lhs),
                          offsets(contracting.sizes, contracting.rhs)};
  Tensor result(type.dtype, type.shape.sizes());
  dispatch(type.dtype, [&]<class R>(std::type_identity<R>) {
    dispatch(lhs.dtype(), [&]<class T>(std::type_identity<T>) {
      if constexpr (is_float_type<R> && is_float_type<T>) {
        // f32 sums suffice for 16-bit operands unless the result asks for more.
        using A = std::conditional_t<std::is_same_v<R, double>, double, Accumulator<T>>;
        const std::vector<A> sums = products<T, A>(lhs, rhs, rows, terms);
        std::ranges::transform(sums, result.data<R>().begin(),
                               [](A sum) { return convert_to<R>(static_cast<double>(sum)); });
      } else if constexpr (std::is_integral_v<R> && std::is_integral_v<T>) {
        const auto sums = products<T, std::uint64_t>(lhs, rhs, rows, terms);
        std::ranges::transform(sums, result.data<R>().begin(),
                               [](std::uint64_t sum) { return static_cast<R>(sum); });
      }
    });
  });
  return result;
}

}  // namespace mulgrad::eval
