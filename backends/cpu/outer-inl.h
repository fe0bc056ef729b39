// Products of a column and a row, for the routines of tile.h.
#if defined(MULGRAD_BACKENDS_CPU_OUTER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_OUTER_INL_H
#undef MULGRAD_BACKENDS_CPU_OUTER_INL_H
#else
#define MULGRAD_BACKENDS_CPU_OUTER_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/cpu/matrix_product.h"
#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of the result by kVectors whole vectors, kept in registers over all rows.
template <int kVectors, class T>
HWY_INLINE void outer_columns(const MatrixProduct<T>& p, std::int64_t column) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = lanes_of<T>();
  const std::int64_t a_row = p.a_row, c_row = p.c_row;
  const T* a = p.a;
  T* c = p.c + column;
  const V scale = hn::Set(d, p.scale);
  V b[kVectors];
  HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, p.b + column + v * lanes);
  if (p.store == Store::overwrite) {
    for (std::int64_t i = 0; i < p.m; ++i, a += a_row, c += c_row) {
      const V left = hn::Mul(scale, hn::Set(d, *a));
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::Mul(left, b[v]), d, c + v * lanes);
      }
    }
  } else {
    for (std::int64_t i = 0; i < p.m; ++i, a += a_row, c += c_row) {
      const V left = hn::Mul(scale, hn::Set(d, *a));
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::MulAdd(left, b[v], hn::LoadU(d, c + v * lanes)), d, c + v * lanes);
      }
    }
  }
}

#if HWY_TARGET == HWY_AVX3
// What is left of the rows behind `column`, less than a vector. A group of rows is read before it
// is written: a masked load soon after a masked store of the row before waits for it.
template <class T>
HWY_INLINE void outer_rest(const MatrixProduct<T>& p, std::int64_t column) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kGroup = 16;
  const std::int64_t rest = p.n - column;
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(rest));
  const V b = load_masked(mask, d, p.b + column);
  const T* a = p.a;
  T* c = p.c + column;
  const auto value = [&](std::int64_t i) HWY_ATTR {
    const V left = hn::Set(d, p.scale * a[i * p.a_row]);
    return p.store == Store::overwrite ? hn::Mul(left, b)
                                       : hn::MulAdd(left, b, load_masked(mask, d, c + i * p.c_row));
  };
  std::int64_t row = 0;
  for (; row + kGroup <= p.m; row += kGroup, a += kGroup * p.a_row, c += kGroup * p.c_row) {
    V values[kGroup];
    HWY_UNROLL(16) for (int i = 0; i < kGroup; ++i) values[i] = value(i);
    HWY_UNROLL(16) for (int i = 0; i < kGroup; ++i) {
      store_first(d, values[i], mask, rest, c + i * p.c_row);
    }
  }
  for (; row < p.m; ++row, a += p.a_row, c += p.c_row) store_first(d, value(0), mask, rest, c);
}
#endif

template <class T>
void by_rows(const MatrixProduct<T>& p) {
  const std::int64_t lanes = lanes_of<T>();
  std::int64_t column = 0;
  for (; column + 8 * lanes <= p.n; column += 8 * lanes) outer_columns<8>(p, column);
  for (; column + lanes <= p.n; column += lanes) outer_columns<1>(p, column);
#if HWY_TARGET == HWY_AVX3
  if (column < p.n) outer_rest(p, column);
#else
  // Element by element: masked stores of AVX2 are microcode on some CPUs.
  for (std::int64_t i = 0; column < p.n && i < p.m; ++i) {
    const T left = p.scale * p.a[i * p.a_row];
    for (std::int64_t j = column; j < p.n; ++j) {
      T& to = p.c[i * p.c_row + j];
      const T term = left * p.b[j];
      to = p.store == Store::overwrite ? term : to + term;
    }
  }
#endif
}

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
