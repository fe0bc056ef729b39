// Products by dot products, whose vectors go along k.
#if defined(MULGRAD_BACKENDS_CPU_DOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_DOTS_INL_H
#undef MULGRAD_BACKENDS_CPU_DOTS_INL_H
#else
#define MULGRAD_BACKENDS_CPU_DOTS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backends/cpu/matrix_product.h"
#include "backends/cpu/pack-inl.h"
#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows that share what they load of four columns: as many sums as there are registers for.
#if HWY_TARGET == HWY_AVX3
constexpr int kDotRows = 6;
#else
constexpr int kDotRows = 2;
#endif
// Elements of a dot product between two additions in f64.
constexpr std::int64_t kDotDepth = 4096;

// The sums of the lanes of four vectors.
template <class D, class V, class T>
HWY_INLINE void sum_four(D d, const V* v, T* to) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<double, D> pairs;
    const auto low = [&](V x, V y) HWY_ATTR { return hn::InterleaveLower(d, x, y); };
    const auto up = [&](V x, V y) HWY_ATTR { return hn::InterleaveUpper(d, x, y); };
    const auto sum01 = hn::BitCast(pairs, hn::Add(low(v[0], v[1]), up(v[0], v[1])));
    const auto sum23 = hn::BitCast(pairs, hn::Add(low(v[2], v[3]), up(v[2], v[3])));
    // Every 16 bytes now hold a part of each sum.
    const V parts = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, sum01, sum23)),
                            hn::BitCast(d, hn::InterleaveUpper(pairs, sum01, sum23)));
    const hn::FixedTag<T, 4> block;
    const auto whole = [&] HWY_ATTR {
#if HWY_TARGET == HWY_AVX3
      const hn::Half<D> half;
      const hn::Half<hn::Half<D>> quarter;
      const auto sum = hn::Add(hn::LowerHalf(half, parts), hn::UpperHalf(half, parts));
      return hn::Add(hn::LowerHalf(quarter, sum), hn::UpperHalf(quarter, sum));
#elif HWY_TARGET == HWY_AVX2
      const hn::Half<D> half;
      return hn::Add(hn::LowerHalf(half, parts), hn::UpperHalf(half, parts));
#else
      return parts;
#endif
    };
    return hn::StoreU(whole(), block, to);
  }
#endif
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(hn::SumOfLanes(d, v[i]));
}

// Dot products of kRows rows with kDots columns, both contiguous, over `depth` steps of k from
// `start` on. They share what they load.
template <int kRows, int kDots, class T>
HWY_INLINE void partial_dots(const MatrixProduct<T>& p, std::int64_t start, std::int64_t depth,
                             T (&found)[kRows * kDots]) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = lanes_of<T>();
  const std::int64_t a_row = p.a_row, b_column = p.b_column;
  constexpr int kAll = kRows * kDots;
  constexpr int kSums = std::max(1, 8 / kAll);
  V sums[kSums][kAll];
  HWY_UNROLL(8) for (int s = 0; s < kSums; ++s) {
    HWY_UNROLL(24) for (int i = 0; i < kAll; ++i) sums[s][i] = hn::Zero(d);
  }
  const auto step = [&](int s, std::int64_t at, auto load) HWY_ATTR {
    V right[kDots];
    HWY_UNROLL(8) for (int j = 0; j < kDots; ++j) right[j] = load(p.b + j * b_column + at);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      const V left = load(p.a + r * a_row + at);
      HWY_FENCE;  // else compilers load it once for each use
      HWY_UNROLL(8) for (int j = 0; j < kDots; ++j) {
        V& sum = sums[s][r * kDots + j];
        sum = hn::MulAdd(left, right[j], sum);
      }
    }
  };
  const std::int64_t end = start + depth;
  std::int64_t i = start;
  for (; i + kSums * lanes <= end; i += kSums * lanes) {
    HWY_UNROLL(8) for (int s = 0; s < kSums; ++s) {
      step(s, i + s * lanes, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
    }
  }
  for (; i < end; i += lanes) {
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(end - i, lanes)));
    step(0, i, [&](const T* from) HWY_ATTR { return load_masked(mask, d, from); });
  }
  HWY_UNROLL(8) for (int s = 1; s < kSums; ++s) {
    HWY_UNROLL(24) for (int j = 0; j < kAll; ++j) sums[0][j] = hn::Add(sums[0][j], sums[s][j]);
  }
  constexpr int kFours = kAll / 4 * 4;
  HWY_UNROLL(6) for (int j = 0; j < kFours; j += 4) sum_four(d, sums[0] + j, found + j);
  HWY_UNROLL(3) for (int j = kFours; j < kAll; ++j) {
    found[j] = hn::GetLane(hn::SumOfLanes(d, sums[0][j]));
  }
}

// The same over all of k, elements of a row of c being `stride` apart.
template <int kRows, int kDots, class T>
HWY_NOINLINE void dots(const MatrixProduct<T>& p, std::int64_t stride) {
  constexpr int kAll = kRows * kDots;
  T found[kAll];
  partial_dots<kRows, kDots>(p, 0, std::min(p.k, kDotDepth), found);
  if (p.k > kDotDepth) {
    double totals[kAll];
    std::copy_n(found, kAll, totals);
    for (std::int64_t start = kDotDepth; start < p.k; start += kDotDepth) {
      partial_dots<kRows, kDots>(p, start, std::min(p.k - start, kDotDepth), found);
      for (int i = 0; i < kAll; ++i) totals[i] += static_cast<double>(found[i]);
    }
    for (int i = 0; i < kAll; ++i) found[i] = static_cast<T>(totals[i]);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kDots; ++j) {
      T sum = p.scale * found[r * kDots + j];
      T& to = p.c[r * p.c_row + j * stride];
      if (p.store == Store::add) sum += to;
      to = finished(p, r, j, sum);
    }
  }
}

// Rows by columns, all contiguous, a few at a time: the rows stay in the first-level cache.
template <int kRows, class T>
HWY_INLINE void dots_rows(MatrixProduct<T> p, std::int64_t stride) {
  constexpr int kMost = kRows == 1 ? 8 : 4;
  const auto skip = [&](int columns) {
    p = columns_of(p, columns, p.n - columns);
    p.c += columns * (stride - 1);
  };
  for (; p.n >= kMost; skip(kMost)) dots<kRows, kMost>(p, stride);
  if (p.n >= 4) {
    dots<kRows, 4>(p, stride);
    skip(4);
  }
  if (p.n == 3) dots<kRows, 3>(p, stride);
  if (p.n == 2) dots<kRows, 2>(p, stride);
  if (p.n == 1) dots<kRows, 1>(p, stride);
}

// Contiguous rows times a few columns. Packs at most a vector's length of columns, rounded up to
// four, with k rounded up to a whole vector.
template <class T>
void dots_slice(const MatrixProduct<T>& p, T* scratch) {
  MatrixProduct<T> block = p;
  if (p.b_row != 1) {
    MatrixProduct<T> columns = p;  // whose right side is that of p with its columns as rows
    std::swap(columns.b_row, columns.b_column);
    std::swap(columns.k, columns.n);
    const std::int64_t lanes = lanes_of<T>();
    block.b = scratch;
    block.b_row = 1;
    block.b_column = (p.k + lanes - 1) / lanes * lanes;
    pack_panel(columns, block.b_column, scratch);
  }
  for (; block.m >= kDotRows; block.m -= kDotRows) {
    dots_rows<kDotRows>(block, 1);
    skip_rows(block, kDotRows);
  }
  for (; block.m > 0; --block.m) {
    dots_rows<1>(block, 1);
    skip_rows(block, 1);
  }
}

// n dot products for a k of at most one vector.
template <class T>
HWY_INLINE void short_dots(const MatrixProduct<T>& p, std::int64_t stride) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(p.k));
  const V x = hn::Mul(hn::Set(d, p.scale), load_masked(mask, d, p.a));
  for (std::int64_t column = 0; column < p.n; column += 4) {
    V terms[4];
    HWY_UNROLL(4) for (std::int64_t j = 0; j < 4; ++j) {
      const T* b = p.b + std::min(column + j, p.n - 1) * p.b_column;
      terms[j] = hn::Mul(x, load_masked(mask, d, b));
    }
    T found[4];
    sum_four(d, terms, found);
    const std::int64_t count = std::min<std::int64_t>(4, p.n - column);
    for (std::int64_t j = 0; j < count; ++j) {
      T& to = p.c[(column + j) * stride];
      to = p.store == Store::overwrite ? found[j] : to + found[j];
    }
  }
}

template <class T>
void by_dots(const MatrixProduct<T>& p, std::int64_t stride) {
  if (p.k <= lanes_of<T>()) return short_dots(p, stride);
  dots_rows<1>(p, stride);
}

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
