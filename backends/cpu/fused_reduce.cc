#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/fused_functions.h"

// Highway compiles this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fused_reduce.cc"
#include <hwy/foreach_target.h>
// Behind foreach_target.
#include "backends/cpu/fused_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {
namespace {

// All lanes combined into one, halves first.
template <class F, class D>
HWY_INLINE hn::TFromD<D> fold_lanes([[maybe_unused]] D d, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return fold_lanes<F>(half, F::apply(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else if constexpr (sizeof(hn::TFromD<D>) == 8) {
    v = F::apply(d, v, hn::Shuffle01(v));
  } else {
    v = F::apply(d, v, hn::Shuffle1032(v));
    v = F::apply(d, v, hn::Shuffle2301(v));
  }
#endif
  return hn::GetLane(v);
}

// A fold is described by its accumulator's type A, start(), what it makes of no element, and how
// an accumulator of lanes of A takes a vector of T.
template <class T>
struct Sum {
  using A = double;
  using Combine = AddOp;
  static constexpr A start() { return -0.0; }
  static constexpr T none() { return 0; }
};
template <class T>
struct Max {
  using A = T;
  using Combine = MaximumOp;
  static constexpr A start() { return -std::numeric_limits<T>::infinity(); }
  static constexpr T none() { return start(); }
};
template <class T>
struct Min {
  using A = T;
  using Combine = MinimumOp;
  static constexpr A start() { return std::numeric_limits<T>::infinity(); }
  static constexpr T none() { return start(); }
};

// As many elements of T as there are lanes of the accumulator, as such lanes.
template <class T, class DA>
HWY_INLINE hn::Vec<DA> widened(DA da, hn::Vec<hn::Rebind<T, DA>> x) {
  if constexpr (sizeof(hn::TFromD<DA>) > sizeof(T)) {
    return hn::PromoteTo(da, x);
  } else {
    return x;
  }
}
template <class T, class DA>
HWY_INLINE hn::Vec<DA> load_wide(DA da, const T* x) {
  return widened<T>(da, hn::LoadU(hn::Rebind<T, DA>(), x));
}
template <class T, class DA>
HWY_INLINE hn::Vec<DA> load_wide_part(DA da, const T* x, std::int64_t n) {
  return widened<T>(da, load_part(hn::Rebind<T, DA>(), x, n));
}

template <class T, class DA>
HWY_INLINE hn::Vec<hn::Rebind<T, DA>> narrowed(DA, hn::Vec<DA> x) {
  const hn::Rebind<T, DA> d;
  if constexpr (sizeof(hn::TFromD<DA>) == sizeof(T)) {
    return x;
#if HWY_TARGET == HWY_SCALAR
  } else {  // Highway narrows infinities to the largest number there
    return hn::Set(d, static_cast<T>(hn::GetLane(x)));
#else
  } else {
    return hn::DemoteTo(d, x);
#endif
  }
}

// n > 0 elements folded, in an order that n alone decides.
template <class T, class Fold>
HWY_INLINE typename Fold::A fold(const T* x, std::int64_t n) {
  using Combine = typename Fold::Combine;
  const Lanes<typename Fold::A> d;
  const std::int64_t lanes = lanes_of(d);
  const auto start = hn::Set(d, Fold::start());
  auto total = start;
  std::int64_t i = 0;
  if (n >= 4 * lanes) {
    auto b = start, c = start, e = start;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      total = Combine::apply(d, total, load_wide(d, x + i));
      b = Combine::apply(d, b, load_wide(d, x + i + lanes));
      c = Combine::apply(d, c, load_wide(d, x + i + 2 * lanes));
      e = Combine::apply(d, e, load_wide(d, x + i + 3 * lanes));
    }
    total = Combine::apply(d, Combine::apply(d, total, b), Combine::apply(d, c, e));
  }
  for (; i + lanes <= n; i += lanes) total = Combine::apply(d, total, load_wide(d, x + i));
  if (i < n) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - i));
    total = Combine::apply(d, total, hn::IfThenElse(rest, load_wide_part(d, x + i, n - i), start));
  }
  return fold_lanes<Combine>(d, total);
}

template <class T, class Fold>
HWY_INLINE typename Fold::A combine_one(typename Fold::A a, typename Fold::A b) {
  using A = typename Fold::A;
  if constexpr (std::is_same_v<typename Fold::Combine, AddOp>) {
    return a + b;
  } else {
    const hn::Simd<A, 1, 0> d;
    return hn::GetLane(Fold::Combine::apply(d, hn::Set(d, a), hn::Set(d, b)));
  }
}

template <class T, class Fold>
void reduce_all(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                std::int64_t n, const Block&) {
  if (n == 0) return;
  auto* total = reinterpret_cast<typename Fold::A*>(r);
  *total = combine_one<T, Fold>(*total, fold<T, Fold>(reinterpret_cast<const T*>(a), n));
}

template <class T, class Fold>
void reduce_all_at_once(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                        std::int64_t n, const Block&) {
  *reinterpret_cast<T*>(r) = static_cast<T>(fold<T, Fold>(reinterpret_cast<const T*>(a), n));
}

#if MULGRAD_PERMUTES
// Few short rows, all in one vector, without going through memory.
template <class T, class Fold, Tail kTail>
HWY_INLINE void reduce_small(T* to, const T* x, const Block& block) {
  using A = typename Fold::A;
  const Lanes<T> d;
  const hn::RebindToSigned<Lanes<T>> di;
  const hn::Half<Lanes<T>> half;  // there are two columns or more
  const hn::Rebind<A, decltype(half)> da;
  const auto v = load_part(d, x, block.rows * block.columns);
  const auto row =
      hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<hn::TFromD<decltype(di)>>(block.columns)));
  const auto inside = hn::Set(di, static_cast<hn::TFromD<decltype(di)>>(hn::Lanes(d) - 1));
  const auto column = [&](std::int64_t i) HWY_ATTR {
    const auto at = hn::Add(row, hn::Set(di, static_cast<hn::TFromD<decltype(di)>>(i)));
    const auto chosen = hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::And(at, inside)));
    return widened<T>(da, hn::LowerHalf(half, chosen));
  };
  auto total = column(0);
  for (std::int64_t i = 1; i < block.columns; ++i) {
    total = Fold::Combine::apply(da, total, column(i));
  }
  const ToValues<T, kTail> result(reinterpret_cast<std::byte*>(to));
  result.part(half, 0, block.rows, narrowed<T>(da, total));
}
#endif

template <class T, class Fold, Tail kTail>
void reduce_columns(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                    std::int64_t, const Block& block) {
  T* to = reinterpret_cast<T*>(r);
  const T* x = reinterpret_cast<const T*>(a);
  const std::int64_t n = block.columns;
#if MULGRAD_PERMUTES
  if (n >= 2 && n <= 4 && block.rows * n <= lanes_of(Lanes<T>())) {
    reduce_small<T, Fold, kTail>(to, x, block);
    return;
  }
#endif
  if (n <= 4) {  // fewer than it pays to make vectors of
    for (std::int64_t row = 0; row < block.rows; ++row, x += n) {
      if (n == 0) {
        to[row] = Fold::none();
        continue;
      }
      typename Fold::A total = x[0];
      for (std::int64_t i = 1; i < n; ++i) total = combine_one<T, Fold>(total, x[i]);
      to[row] = static_cast<T>(total);
    }
    return;
  }
  for (std::int64_t row = 0; row < block.rows; ++row, x += n) {
    to[row] = static_cast<T>(fold<T, Fold>(x, n));
  }
}

// One vector of columns at x, combined with `total`.
template <class T, class Fold, class DA>
HWY_INLINE hn::Vec<DA> fold_rows(DA d, hn::Vec<DA> total, const T* x, const Block& block,
                                 std::int64_t columns) {
  using Combine = typename Fold::Combine;
  const std::int64_t stride = block.columns;
  std::int64_t row = 0;
  if (columns < lanes_of(d)) {
    for (; row < block.rows; ++row, x += stride) {
      total = Combine::apply(d, total, load_wide_part(d, x, columns));
    }
    return total;
  }
  if (block.rows >= 4) {
    auto b = hn::Set(d, Fold::start()), c = b, e = b;
    for (; row + 4 <= block.rows; row += 4, x += 4 * stride) {
      total = Combine::apply(d, total, load_wide(d, x));
      b = Combine::apply(d, b, load_wide(d, x + stride));
      c = Combine::apply(d, c, load_wide(d, x + 2 * stride));
      e = Combine::apply(d, e, load_wide(d, x + 3 * stride));
    }
    total = Combine::apply(d, Combine::apply(d, total, b), Combine::apply(d, c, e));
  }
  for (; row < block.rows; ++row, x += stride) {
    total = Combine::apply(d, total, load_wide(d, x));
  }
  return total;
}

// The accumulators have room for whole vectors.
template <class T, class Fold>
void reduce_rows(std::byte* r, const std::byte* a, const std::byte*, const std::byte*, std::int64_t,
                 const Block& block) {
  const Lanes<typename Fold::A> d;
  const std::int64_t lanes = lanes_of(d);
  for (std::int64_t column = 0; column < block.columns; column += lanes) {
    auto* to = reinterpret_cast<typename Fold::A*>(r) + column;
    const T* x = reinterpret_cast<const T*>(a) + column;
    const std::int64_t n = std::min(lanes, block.columns - column);
    hn::StoreU(fold_rows<T, Fold>(d, hn::LoadU(d, to), x, block, n), d, to);
  }
}

template <class T, class Fold>
void reduce_rows_at_once(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                         std::int64_t, const Block& block) {
  using A = typename Fold::A;
  const Lanes<A> d;
  const hn::Rebind<T, Lanes<A>> dt;
  const std::int64_t lanes = lanes_of(d);
  for (std::int64_t column = 0; column < block.columns; column += lanes) {
    T* to = reinterpret_cast<T*>(r) + column;
    const T* x = reinterpret_cast<const T*>(a) + column;
    const std::int64_t n = std::min(lanes, block.columns - column);
    const auto total = fold_rows<T, Fold>(d, hn::Set(d, Fold::start()), x, block, n);
    store_part(dt, narrowed<T>(d, total), to, n);
  }
}

template <class T, class Fold>
BlockFunction of_fold(Reducing reducing, Tail tail) {
  switch (reducing) {
    case Reducing::rows_away:
      return reduce_rows<T, Fold>;
    case Reducing::columns_away:
      return tail == Tail::whole ? reduce_columns<T, Fold, Tail::whole>
                                 : reduce_columns<T, Fold, Tail::exact>;
    case Reducing::all:
      return reduce_all<T, Fold>;
    case Reducing::rows_at_once:
      return reduce_rows_at_once<T, Fold>;
    case Reducing::all_at_once:
      return reduce_all_at_once<T, Fold>;
  }
  return nullptr;
}

template <class T>
BlockFunction of_type(Reduction kind, Reducing reducing, Tail tail) {
  switch (kind) {
    case Reduction::sum:
      return of_fold<T, Sum<T>>(reducing, tail);
    case Reduction::max:
      return of_fold<T, Max<T>>(reducing, tail);
    case Reduction::min:
      return of_fold<T, Min<T>>(reducing, tail);
    default:
      return nullptr;
  }
}

BlockFunction find_reduction(Reduction kind, DType dtype, Reducing reducing, Tail tail) {
  if (dtype == DType::f32) return of_type<float>(kind, reducing, tail);
  if (dtype == DType::f64) return of_type<double>(kind, reducing, tail);
  return nullptr;
}

// T has the size of the elements.
template <class T>
void spread_scalar(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                   std::int64_t n, const Block&) {
  const Lanes<T> d;
  const auto v = hn::Set(d, *reinterpret_cast<const T*>(a));
  for (std::int64_t i = 0; i < n; i += lanes_of(d)) hn::StoreU(v, d, reinterpret_cast<T*>(r) + i);
}

// What is written behind a row is what the next row overwrites.
template <class T>
void spread_column(std::byte* r, const std::byte* a, const std::byte*, const std::byte*,
                   std::int64_t, const Block& block) {
  const Lanes<T> d;
  T* to = reinterpret_cast<T*>(r);
  const T* from = reinterpret_cast<const T*>(a);
  const std::int64_t n = block.columns;
#if MULGRAD_PERMUTES
  if constexpr (sizeof(T) >= 4) {
    if (rows_in_vector<T>(n) != 0) {
      const std::int64_t all = block.rows * n;
      const ShortColumns<T> columns(a, block);
      for (std::int64_t i = 0; i < all; i += lanes_of(d)) {
        hn::StoreU(columns.part(d, i, std::min(lanes_of(d), all - i)), d, to + i);
      }
      return;
    }
  }
#endif
  for (std::int64_t row = 0; row < block.rows; ++row, to += n) {
    const auto v = hn::Set(d, from[row]);
    for (std::int64_t i = 0; i < n; i += lanes_of(d)) hn::StoreU(v, d, to + i);
  }
}

template <class T>
void spread_row(std::byte* r, const std::byte* a, const std::byte*, const std::byte*, std::int64_t,
                const Block& block) {
  const Lanes<T> d;
  const T* from = reinterpret_cast<const T*>(a);
  T* to = reinterpret_cast<T*>(r);
  const std::int64_t n = block.columns;
  if (n > lanes_of(d)) {
    for (std::int64_t row = 0; row < block.rows; ++row, to += n) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    }
    return;
  }
#if MULGRAD_PERMUTES
  if constexpr (sizeof(T) >= 4) {
    if (const std::int64_t rows = rows_in_vector<T>(n); rows != 0) {
      const ShortRows<T> row_of(a, block);
      for (std::int64_t row = 0; row < block.rows; row += rows, to += lanes_of(d)) {
        hn::StoreU(row_of.tiled, d, to);
      }
      return;
    }
  }
#endif
  const auto v = load_part(d, from, n);
  for (std::int64_t row = 0; row < block.rows; ++row, to += n) hn::StoreU(v, d, to);
}

template <class T>
BlockFunction spread_of(Spread spread) {
  switch (spread) {
    case Spread::scalar:
      return spread_scalar<T>;
    case Spread::row:
      return spread_row<T>;
    case Spread::column:
      return spread_column<T>;
  }
  return nullptr;
}

template <class T>
RowLength length_of_row(std::int64_t columns) {
  if (rows_in_vector<T>(columns) != 0) return RowLength::part_of_vector;
  const bool is_power = columns > 0 && std::has_single_bit(static_cast<std::uint64_t>(columns));
  return is_power && columns % lanes_of(Lanes<T>()) == 0 ? RowLength::whole_vectors
                                                         : RowLength::other;
}

RowLength find_row_length(std::size_t element_bytes, std::int64_t columns) {
  if (element_bytes == 4) return length_of_row<std::uint32_t>(columns);
  return element_bytes == 8 ? length_of_row<std::uint64_t>(columns) : RowLength::other;
}

BlockFunction find_spread(std::size_t element_bytes, Spread spread) {
  if (element_bytes == 1) return spread_of<std::uint8_t>(spread);
  return element_bytes == 4 ? spread_of<std::uint32_t>(spread) : spread_of<std::uint64_t>(spread);
}

}  // namespace
}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mulgrad::cpu {

DType accumulator_of(Reduction kind, DType dtype) {
  return kind == Reduction::sum ? DType::f64 : dtype;
}

HWY_EXPORT(find_reduction);
BlockFunction reduction_function(Reduction kind, DType dtype, Reducing reducing, Tail tail) {
  return HWY_DYNAMIC_DISPATCH(find_reduction)(kind, dtype, reducing, tail);
}

HWY_EXPORT(find_row_length);
RowLength row_length(std::size_t element_bytes, std::int64_t columns) {
  return HWY_DYNAMIC_DISPATCH(find_row_length)(element_bytes, columns);
}

HWY_EXPORT(find_spread);
BlockFunction spread_function(std::size_t element_bytes, Spread spread) {
  return HWY_DYNAMIC_DISPATCH(find_spread)(element_bytes, spread);
}

}  // namespace mulgrad::cpu
#endif
