// Copies of parts of the right side of a product, for the routines of tile.h.
#if defined(MULGRAD_BACKENDS_CPU_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_PACK_INL_H
#undef MULGRAD_BACKENDS_CPU_PACK_INL_H
#else
#define MULGRAD_BACKENDS_CPU_PACK_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "backends/cpu/matrix_product.h"
#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Four columns of 16 bytes of four-byte elements, or two of eight bytes, as rows of `width`
// elements. `load(i)` is the i-th column.
template <class D, class F, class T>
HWY_INLINE void transpose_square(D d, F load, std::int64_t width, T* to) {
  if constexpr (sizeof(T) == 8) {
    const auto x0 = load(0);
    const auto x1 = load(1);
    hn::StoreU(hn::InterleaveLower(d, x0, x1), d, to);
    hn::StoreU(hn::InterleaveUpper(d, x0, x1), d, to + width);
  } else {
    const hn::Repartition<double, D> pairs;
    const auto x0 = load(0);
    const auto x1 = load(1);
    const auto x2 = load(2);
    const auto x3 = load(3);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, x0, x1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, x2, x3));
    const auto up01 = hn::BitCast(pairs, hn::InterleaveUpper(d, x0, x1));
    const auto up23 = hn::BitCast(pairs, hn::InterleaveUpper(d, x2, x3));
    const auto store = [&](auto v, std::int64_t i)
                           HWY_ATTR { hn::StoreU(hn::BitCast(d, v), d, to + i * width); };
    store(hn::InterleaveLower(pairs, low01, low23), 0);
    store(hn::InterleaveUpper(pairs, low01, low23), 1);
    store(hn::InterleaveLower(pairs, up01, up23), 2);
    store(hn::InterleaveUpper(pairs, up01, up23), 3);
  }
}

// Columns that are contiguous in memory, by squares of 16 bytes. A cache line of a column is read
// as a whole: columns that lie a power of two apart push each other out. The last squares may go
// beyond k, where nothing is read, to a multiple of four rows.
template <class T>
void pack_transposed(const MatrixProduct<T>& p, std::int64_t width, T* HWY_RESTRICT to) {
  constexpr std::int64_t kSquare = 16 / sizeof(T);
  constexpr std::int64_t kLine = 64 / sizeof(T);
  const hn::FixedTag<T, kSquare> d;
  for (std::int64_t begin = 0; begin < p.k; begin += kLine) {
    const std::int64_t end = std::min(p.k, begin + kLine);
    std::int64_t column = 0;
    for (; column + kSquare <= p.n; column += kSquare) {
      const T* from = p.b + column * p.b_column;
      std::int64_t row = begin;
      for (; row + kSquare <= end; row += kSquare) {
        const auto load = [&](std::int64_t i)
                              HWY_ATTR { return hn::LoadU(d, from + row + i * p.b_column); };
        transpose_square(d, load, width, to + row * width + column);
      }
      if (row < end) {
        const auto mask = hn::FirstN(d, static_cast<std::size_t>(end - row));
        const auto load = [&](std::int64_t i) HWY_ATTR {
          return load_masked(mask, d, from + row + i * p.b_column);
        };
        transpose_square(d, load, width, to + row * width + column);
      }
    }
    for (; column < p.n; ++column) {
      for (std::int64_t row = begin; row < end; ++row) {
        to[row * width + column] = p.b[row + column * p.b_column];
      }
    }
  }
}
#endif

// Columns of the right side, contiguous or not, as rows of `width` elements, the ones behind the
// columns left as they are. Up to three rows behind k may be written.
template <class T>
void pack_panel(const MatrixProduct<T>& p, std::int64_t width, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lanes_of<T>();
  if (p.b_column == 1) {
    const std::int64_t whole = p.n / lanes * lanes;
    const auto last = hn::FirstN(d, static_cast<std::size_t>(p.n - whole));
    for (std::int64_t row = 0; row < p.k; ++row, to += width) {
      const T* from = p.b + row * p.b_row;
      for (std::int64_t column = 0; column < whole; column += lanes) {
        hn::StoreU(hn::LoadU(d, from + column), d, to + column);
      }
      if (whole < p.n) {
        store_first(d, load_masked(last, d, from + whole), last, p.n - whole, to + whole);
      }
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (p.b_row == 1) return pack_transposed(p, width, to);
#endif
  for (std::int64_t row = 0; row < p.k; ++row) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      to[row * width + column] = p.b[row * p.b_row + column * p.b_column];
    }
  }
}

// Contiguous columns that are to be packed, brought into the cache a part at a time while the tiles
// of the panel before them are computed.
template <class T>
class ColumnsAhead {
 public:
  ColumnsAhead() = default;
  ColumnsAhead(const T* from, std::int64_t stride, std::int64_t length, std::int64_t columns)
      : from_(from), stride_(stride), length_(length), columns_(columns) {}

  // Lines to fetch at each of `times` calls.
  std::int64_t share(std::int64_t times) const {
    return columns_ * ((length_ + kLine - 1) / kLine) / times + 1;
  }
  HWY_INLINE void fetch(std::int64_t lines) {
    for (; lines > 0 && columns_ > 0; --lines) {
      hwy::Prefetch(from_ + row_);
      row_ += kLine;
      if (row_ >= length_) {
        row_ = 0;
        from_ += stride_;
        --columns_;
      }
    }
  }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);
  const T* from_ = nullptr;
  std::int64_t stride_ = 0, length_ = 0, columns_ = 0, row_ = 0;
};

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
