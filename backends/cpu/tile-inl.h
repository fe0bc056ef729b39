// The routines of tile.h for one vector instruction set; read once for each by the .cc files.
#if defined(MULGRAD_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_TILE_INL_H
#undef MULGRAD_TILE_INL_H
#else
#define MULGRAD_TILE_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "backends/cpu/matrix_product.h"
#include "backends/cpu/threads.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A tile of the result lives in registers: kTileRows by two vectors, with two for the right side
// and one for an element of the left. A single row takes up to kRowVectors.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 14;
#else
constexpr int kTileRows = 6;
#endif
constexpr int kTileVectors = 2;
constexpr int kRowVectors = 8;
// Steps of k at a time: a packed panel of the right side then stays in the second-level cache, and
// long sums are sums of sums.
constexpr std::int64_t kTileDepth = 1024;
// The same where the left side is stored transposed: a tile uses a part of every cache line of it,
// and the next tile finds the line again if not too many others came between.
#if HWY_TARGET == HWY_AVX3
constexpr std::int64_t kTransposedDepth = kTileDepth;
#else
constexpr std::int64_t kTransposedDepth = 256;
#endif
// Elements of a dot product between two additions in f64.
constexpr std::int64_t kDotDepth = 4096;

template <class T>
std::int64_t lanes_of() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

// Masks are of first lanes. Highway's masked loads and stores touch no memory behind those on x86
// alone.
template <class M, class D, class T>
HWY_INLINE hn::Vec<D> load_masked(M mask, D d, const T* from) {
#if HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3)
  return hn::MaskedLoad(mask, d, from);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  std::copy_n(from, hn::CountTrue(d, mask), lanes);
  return hn::Load(d, lanes);
#endif
}
template <class V, class M, class D, class T>
HWY_INLINE void store_masked(V v, M mask, D d, T* to) {
#if HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3)
  hn::BlendedStore(v, mask, d, to);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::copy_n(lanes, hn::CountTrue(d, mask), to);
#endif
}

// The last vector of a row: all of it, or its first lanes alone. With AVX-512 a mask costs nothing.
enum class Last : std::uint8_t { whole, part };
#if HWY_TARGET == HWY_AVX3
constexpr Last kWholeLast = Last::part;
#else
constexpr Last kWholeLast = Last::whole;
#endif

// Masked stores of AVX2 are microcode on some CPUs.
template <class D, class V, class M, class T>
HWY_INLINE void store_first(D d, V v, M mask, std::int64_t count, T* to) {
#if HWY_TARGET == HWY_AVX3
  static_cast<void>(count);
  hn::BlendedStore(v, mask, d, to);
#else
  static_cast<void>(mask);
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (std::int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// One tile of the result: `columns` of its up to kVectors vectors.
template <int kRows, int kVectors, Last kLast, class T>
HWY_NOINLINE void tile(const MatrixProduct<T>& p, std::int64_t columns) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = lanes_of<T>();
  constexpr int kWhole = kLast == Last::whole ? kVectors : kVectors - 1;
  const std::int64_t part = columns - (kVectors - 1) * lanes;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(part));
  HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
      hwy::Prefetch(p.c + i * p.c_row + v * lanes);
    }
  }
  // As many sums at a time as the multiply-adds take to finish.
  constexpr int kSums = std::max(1, 8 / (kRows * kVectors));
  V sums[kSums][kRows][kVectors];
  HWY_UNROLL(16) for (int s = 0; s < kSums; ++s) {
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) sums[s][i][v] = hn::Zero(d);
    }
  }
  // Three rows to a pointer, which x86 can address by one register more.
  constexpr int kPointers = (kRows + 2) / 3;
  const std::int64_t a_row = p.a_row, a_column = p.a_column, b_row = p.b_row;
  const T* a[kPointers];
  HWY_UNROLL(16) for (int i = 0; i < kPointers; ++i) a[i] = p.a + 3 * i * a_row;
  const T* b = p.b;
  const auto step = [&](int s) HWY_ATTR {
    V right[kVectors];
    HWY_UNROLL(16) for (int v = 0; v < kWhole; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    if constexpr (kWhole < kVectors) {
      right[kWhole] = load_masked(last, d, b + kWhole * lanes);
    }
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, a[i / 3][(i % 3) * a_row]);
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        sums[s][i][v] = hn::MulAdd(left, right[v], sums[s][i][v]);
      }
    }
    HWY_UNROLL(16) for (int i = 0; i < kPointers; ++i) a[i] += a_column;
    b += b_row;
  };
  std::int64_t left = p.k;
  for (; left >= kSums; left -= kSums) {
    HWY_UNROLL(16) for (int s = 0; s < kSums; ++s) step(s);
  }
  if constexpr (kSums > 1) {
    for (; left > 0; --left) step(0);
    HWY_UNROLL(16) for (int s = 1; s < kSums; ++s) {
      HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
        HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
          sums[0][i][v] = hn::Add(sums[0][i][v], sums[s][i][v]);
        }
      }
    }
  }
  // All is read before anything is written: a masked load soon after a masked store of the row
  // before waits for it, even where they do not overlap.
  const V scale = hn::Set(d, p.scale);
  HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
      V& sum = sums[0][i][v];
      const T* from = p.c + i * p.c_row + v * lanes;
      if (p.store == Store::overwrite) {
        sum = hn::Mul(scale, sum);
      } else if (v < kWhole) {
        sum = hn::MulAdd(scale, sum, hn::LoadU(d, from));
      } else {
        sum = hn::MulAdd(scale, sum, load_masked(last, d, from));
      }
    }
  }
  HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
      T* to = p.c + i * p.c_row + v * lanes;
      if (v < kWhole) {
        hn::StoreU(sums[0][i][v], d, to);
      } else {
        store_first(d, sums[0][i][v], last, part, to);
      }
    }
  }
}

template <class T>
using TileFunction = void (*)(const MatrixProduct<T>&, std::int64_t);

// The functions for 1 .. kTileRows rows, and for one row of 1 .. kRowVectors vectors.
template <int kVectors, Last kLast, class T, int... kRows>
constexpr std::array<TileFunction<T>, kTileRows> tiles(std::integer_sequence<int, kRows...>) {
  return {&tile<kRows + 1, kVectors, kLast, T>...};
}
template <class T, int... kVectors>
constexpr std::array<TileFunction<T>, kRowVectors> rows(std::integer_sequence<int, kVectors...>) {
  return {&tile<1, kVectors + 1, Last::part, T>...};
}

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
// beyond k, where nothing is read.
template <class T>
void pack_transposed(const MatrixProduct<T>& p, std::int64_t columns, std::int64_t width,
                     T* HWY_RESTRICT to) {
  constexpr std::int64_t kSquare = 16 / sizeof(T);
  constexpr std::int64_t kLine = 64 / sizeof(T);
  static_assert(kTileDepth % kSquare == 0);
  const hn::FixedTag<T, kSquare> d;
  for (std::int64_t begin = 0; begin < p.k; begin += kLine) {
    const std::int64_t end = std::min(p.k, begin + kLine);
    std::int64_t column = 0;
    for (; column + kSquare <= columns; column += kSquare) {
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
    for (; column < columns; ++column) {
      for (std::int64_t row = begin; row < end; ++row) {
        to[row * width + column] = p.b[row + column * p.b_column];
      }
    }
  }
}
#endif

// Columns of the right side, contiguous or not, as rows of `width` elements, the ones behind the
// columns left as they are.
template <class T>
void pack_panel(const MatrixProduct<T>& p, std::int64_t columns, std::int64_t width,
                T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lanes_of<T>();
  if (p.b_column == 1) {
    const std::int64_t whole = columns / lanes * lanes;
    const auto last = hn::FirstN(d, static_cast<std::size_t>(columns - whole));
    for (std::int64_t row = 0; row < p.k; ++row, to += width) {
      const T* from = p.b + row * p.b_row;
      for (std::int64_t column = 0; column < whole; column += lanes) {
        hn::StoreU(hn::LoadU(d, from + column), d, to + column);
      }
      if (whole < columns) {
        store_first(d, load_masked(last, d, from + whole), last, columns - whole, to + whole);
      }
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (p.b_row == 1) return pack_transposed(p, columns, width, to);
#endif
  for (std::int64_t row = 0; row < p.k; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      to[row * width + column] = p.b[row * p.b_row + column * p.b_column];
    }
  }
}

// Rows by tiles of about equal height.
template <class T>
HWY_INLINE void tile_panel(const MatrixProduct<T>& panel, std::int64_t columns,
                           const std::array<TileFunction<T>, kTileRows>& functions) {
  if (panel.m <= kTileRows) return functions[static_cast<std::size_t>(panel.m - 1)](panel, columns);
  MatrixProduct<T> one = panel;
  std::int64_t blocks = (panel.m + kTileRows - 1) / kTileRows;
  const std::int64_t low = panel.m / blocks;
  std::int64_t higher = panel.m - low * blocks;
  for (; blocks > 0; --blocks, --higher) {
    const std::int64_t height = low + (higher > 0 ? 1 : 0);
    functions[static_cast<std::size_t>(height - 1)](one, columns);
    one.a += height * panel.a_row;
    one.c += height * panel.c_row;
  }
}

// One slice of k, columns by panels.
template <class T>
void tile_slice(const MatrixProduct<T>& p, const ThreadPool& pool) {
  constexpr std::make_integer_sequence<int, kTileRows> kHeights;
  static constexpr auto kNarrow = tiles<1, Last::part, T>(kHeights);
  static constexpr auto kWide = tiles<kTileVectors, Last::part, T>(kHeights);
  static constexpr auto kWhole = tiles<kTileVectors, kWholeLast, T>(kHeights);
  static constexpr auto kRow = rows<T>(std::make_integer_sequence<int, kRowVectors>());
  const std::int64_t lanes = lanes_of<T>();
  const std::int64_t width = (p.m == 1 ? kRowVectors : kTileVectors) * lanes;
  const auto run = [&](const MatrixProduct<T>& panel, std::int64_t columns) HWY_ATTR {
    if (p.m == 1) {
      return kRow[static_cast<std::size_t>((columns + lanes - 1) / lanes - 1)](panel, columns);
    }
    tile_panel(panel, columns, columns == width ? kWhole : columns > lanes ? kWide : kNarrow);
  };
  // Copying pays from some rows on.
  const bool packs = p.b_column != 1 || (p.m > 3 * kTileRows && p.n > lanes);
  if (!packs && p.n <= width) return run(p, p.n);
  T* scratch = packs ? reinterpret_cast<T*>(pool.scratch().data()) : nullptr;
  MatrixProduct<T> panel = p;
  for (std::int64_t column = 0; column < p.n; column += width) {
    const std::int64_t columns = std::min(p.n - column, width);
    panel.b = p.b + column * p.b_column;
    panel.c = p.c + column;
    if (packs) {
      const std::int64_t stride = columns > lanes ? width : lanes;
      panel.b_row = p.b_row;
      pack_panel(panel, columns, stride, scratch);
      panel.b = scratch;
      panel.b_row = stride;
    }
    run(panel, columns);
  }
}

template <class T>
void by_tiles(const MatrixProduct<T>& p, const ThreadPool& pool) {
  // A single row's panels are wider; where they are not packed, deep slices keep long sums
  // accurate.
  const std::int64_t tile_depth = p.a_column == 1 ? kTileDepth : kTransposedDepth;
  // A single row's panels are wider; where they are not packed, deep slices keep long sums
  // accurate.
  const std::int64_t row_depth =
      p.b_column == 1 ? 4 * kTileDepth : kTileDepth * kTileVectors / kRowVectors;
  const std::int64_t depth = p.m > 1 ? tile_depth : row_depth;
  if (p.k <= depth) return tile_slice(p, pool);
  MatrixProduct<T> part = p;
  std::int64_t slices = (p.k + depth - 1) / depth;
  for (std::int64_t left = p.k; left > 0; left -= part.k, --slices) {
    part.k = (left + slices - 1) / slices;
    tile_slice(part, pool);
    part.a += part.k * p.a_column;
    part.b += part.k * p.b_row;
    part.store = Store::add;
  }
}

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

// kDots at a time share the loads of a.
template <int kDots, class T>
HWY_INLINE void dots(const MatrixProduct<T>& p, std::int64_t stride) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = lanes_of<T>();
  constexpr int kSums = 8 / kDots;
  double totals[kDots] = {};
  for (std::int64_t start = 0; start < p.k; start += kDotDepth) {
    const std::int64_t end = std::min(p.k, start + kDotDepth);
    V sums[kSums][kDots];
    HWY_UNROLL(8) for (int s = 0; s < kSums; ++s) {
      HWY_UNROLL(8) for (int j = 0; j < kDots; ++j) sums[s][j] = hn::Zero(d);
    }
    std::int64_t i = start;
    for (; i + kSums * lanes <= end; i += kSums * lanes) {
      HWY_UNROLL(8) for (int s = 0; s < kSums; ++s) {
        const V x = hn::LoadU(d, p.a + i + s * lanes);
        HWY_UNROLL(8) for (int j = 0; j < kDots; ++j) {
          sums[s][j] =
              hn::MulAdd(x, hn::LoadU(d, p.b + j * p.b_column + i + s * lanes), sums[s][j]);
        }
      }
    }
    for (; i < end; i += lanes) {
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(end - i, lanes)));
      const V x = load_masked(mask, d, p.a + i);
      HWY_UNROLL(8) for (int j = 0; j < kDots; ++j) {
        sums[0][j] = hn::MulAdd(x, load_masked(mask, d, p.b + j * p.b_column + i), sums[0][j]);
      }
    }
    HWY_UNROLL(8) for (int s = 1; s < kSums; ++s) {
      HWY_UNROLL(8) for (int j = 0; j < kDots; ++j) sums[0][j] = hn::Add(sums[0][j], sums[s][j]);
    }
    T found[kDots];
    if constexpr (kDots == 4) {
      sum_four(d, sums[0], found);
    } else {
      for (int j = 0; j < kDots; ++j) found[j] = hn::GetLane(hn::SumOfLanes(d, sums[0][j]));
    }
    for (int j = 0; j < kDots; ++j) totals[j] += static_cast<double>(found[j]);
  }
  for (int j = 0; j < kDots; ++j) {
    const T sum = p.scale * static_cast<T>(totals[j]);
    T& to = p.c[j * stride];
    to = p.store == Store::overwrite ? sum : to + sum;
  }
}

// The same for a k of at most one vector.
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
  constexpr int kDots = 4;
  MatrixProduct<T> one = p;
  std::int64_t column = 0;
  for (; column + kDots <= p.n; column += kDots) {
    dots<kDots>(one, stride);
    one.b += kDots * p.b_column;
    one.c += kDots * stride;
  }
  for (; column < p.n; ++column) {
    dots<1>(one, stride);
    one.b += p.b_column;
    one.c += stride;
  }
}

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
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(p.n - column));
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
      store_masked(values[i], mask, d, c + i * p.c_row);
    }
  }
  for (; row < p.m; ++row, a += p.a_row, c += p.c_row) store_masked(value(0), mask, d, c);
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
