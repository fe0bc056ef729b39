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
#include "backends/cpu/tile.h"

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
// Steps of k that a tile prefetches ahead where the hardware does not: rows that lie apart. Nothing
// is read by it, so the address may lie behind the matrix.
constexpr std::int64_t kPrefetchSteps = 24;
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

// The last vector of a row: all of it, or its first lanes alone.
enum class Last : std::uint8_t { whole, part };

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

// Whether a tile also copies its vectors of the right side, for the tiles below it: the copy is
// free while multiply-adds are the bottleneck.
enum class Copy : std::uint8_t { no, yes };

// One tile: a product of kRows rows, whose columns fill up to kVectors vectors of tag D.
template <class D, int kRows, int kVectors, Last kLast, Copy kCopy, class T>
HWY_NOINLINE void tile(const MatrixProduct<T>& p, T* HWY_RESTRICT copy) {
  const D d;
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int kWhole = kLast == Last::whole ? kVectors : kVectors - 1;
  const std::int64_t part = p.n - (kVectors - 1) * lanes;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(part));
  T* const c = p.c;
  const std::int64_t c_row = p.c_row;
  // Too late to help in a short product that only writes.
  if (p.store == Store::add || p.k >= 64) {
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) hwy::Prefetch(c + i * c_row + (v + 1) * lanes - 1);
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
    if constexpr (kCopy == Copy::yes) {
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        hwy::Prefetch(b + kPrefetchSteps * b_row + v * lanes);
      }
      hwy::Prefetch(b + kPrefetchSteps * b_row + kVectors * lanes - 1);
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) hn::StoreU(right[v], d, copy + v * lanes);
      copy += kVectors * lanes;
    }
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, a[i / 3][(i % 3) * a_row]);
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        sums[s][i][v] = hn::MulAdd(left, right[v], sums[s][i][v]);
      }
    }
    if constexpr (hn::MaxLanes(d) == hn::MaxLanes(hn::ScalableTag<T>())) {  // else loads limit it
      hwy::Prefetch(a[0] + kPrefetchSteps * a_column);
      hwy::Prefetch(a[kPointers - 1] + kPrefetchSteps * a_column);
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
  if (p.store == Store::overwrite && p.scale != T(1)) {
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        sums[0][i][v] = hn::Mul(scale, sums[0][i][v]);
      }
    }
  }
  if (p.store == Store::add) {
    const T* from = c;
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i, from += c_row) {
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        V& sum = sums[0][i][v];
        if (v < kWhole) {
          sum = hn::MulAdd(scale, sum, hn::LoadU(d, from + v * lanes));
        } else {
          sum = hn::MulAdd(scale, sum, load_masked(last, d, from + v * lanes));
        }
      }
    }
  }
  T* to = c;
  HWY_UNROLL(16) for (int i = 0; i < kRows; ++i, to += c_row) {
    HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
      if (v < kWhole) {
        hn::StoreU(sums[0][i][v], d, to + v * lanes);
      } else {
        store_first(d, sums[0][i][v], last, part, to + v * lanes);
      }
    }
  }
}

constexpr std::make_integer_sequence<int, kTileRows> kHeights;

// The functions for 1 .. kTileRows rows, and for one row of 1 .. kRowVectors vectors.
template <class D, int kVectors, Last kLast, Copy kCopy, class T, int... kRows>
constexpr std::array<TileFunction<T>, kTileRows> tiles(std::integer_sequence<int, kRows...>) {
  return {&tile<D, kRows + 1, kVectors, kLast, kCopy, T>...};
}
template <class T, int... kVectors>
constexpr std::array<TileFunction<T>, kRowVectors> rows(std::integer_sequence<int, kVectors...>) {
  return {&tile<hn::ScalableTag<T>, 1, kVectors + 1, Last::part, Copy::no, T>...};
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
void pack_transposed(const MatrixProduct<T>& p, std::int64_t width, T* HWY_RESTRICT to) {
  constexpr std::int64_t kSquare = 16 / sizeof(T);
  constexpr std::int64_t kLine = 64 / sizeof(T);
  static_assert(kTileDepth % kSquare == 0);
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
// columns left as they are.
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

template <class T>
using TileFunctions = std::array<TileFunction<T>, kTileRows>;

// Rows by tiles of about equal height. With `copying`, the first one reads the right side where it
// lies and copies it, the others read the copy.
template <class T>
HWY_INLINE void tile_panel(MatrixProduct<T> panel, const TileFunctions<T>& functions,
                           const TileFunctions<T>* copying, T* copy, ColumnsAhead<T> ahead) {
  std::int64_t blocks = (panel.m + kTileRows - 1) / kTileRows;
  const std::int64_t low = panel.m / blocks;
  std::int64_t higher = panel.m - low * blocks;
  const std::int64_t share = ahead.share(blocks);
  for (; blocks > 0; --blocks, --higher) {
    ahead.fetch(share);
    const std::int64_t height = low + (higher > 0 ? 1 : 0);
    const auto at = static_cast<std::size_t>(height - 1);
    if (copying != nullptr) {
      (*copying)[at](panel, copy);
      copying = nullptr;
      panel.b = copy;
      panel.b_row = kTileVectors * lanes_of<T>();
    } else {
      functions[at](panel, nullptr);
    }
    panel.a += height * panel.a_row;
    panel.c += height * panel.c_row;
  }
}

// A CPU that works on 64 bytes in two halves takes half the time for a half.
#if HWY_TARGET == HWY_AVX3
template <class T>
using NarrowTag = hn::Half<hn::ScalableTag<T>>;
#else
template <class T>
using NarrowTag = hn::ScalableTag<T>;
#endif

// Columns by panels: of two vectors while there are as many, then of what is left over, where a
// narrow vector is enough behind a whole one by both.
template <class T>
std::int64_t panel_columns(std::int64_t left) {
  const std::int64_t lanes = lanes_of<T>();
  const auto narrow = static_cast<std::int64_t>(hn::Lanes(NarrowTag<T>()));
  if (left >= kTileVectors * lanes) return kTileVectors * lanes;
  return left > lanes && left <= lanes + narrow && narrow < lanes ? lanes : left;
}

template <class T>
T* scratch_of(const ThreadPool& pool) {
  return reinterpret_cast<T*>(pool.scratch().data());
}

// A single row, by wide panels.
template <class T>
void row_slice(const MatrixProduct<T>& p, T* scratch) {
  static constexpr auto kRow = rows<T>(std::make_integer_sequence<int, kRowVectors>());
  const std::int64_t lanes = lanes_of<T>();
  MatrixProduct<T> panel = p;
  for (std::int64_t column = 0; column < p.n; column += kRowVectors * lanes) {
    panel.n = std::min(p.n - column, kRowVectors * lanes);
    const std::int64_t vectors = (panel.n + lanes - 1) / lanes;
    panel.b = p.b + column * p.b_column;
    panel.b_row = p.b_row;
    panel.c = p.c + column;
    if (p.b_column != 1) {
      pack_panel(panel, vectors * lanes, scratch);
      panel.b = scratch;
      panel.b_row = vectors * lanes;
    }
    kRow[static_cast<std::size_t>(vectors - 1)](panel, nullptr);
  }
}

// The tiles for panels of `columns`.
template <class T>
const TileFunctions<T>& functions_for(std::int64_t columns) {
  using D = hn::ScalableTag<T>;
  static constexpr auto kNarrow = tiles<NarrowTag<T>, 1, Last::part, Copy::no, T>(kHeights);
  static constexpr auto kSingle = tiles<D, 1, Last::part, Copy::no, T>(kHeights);
  static constexpr auto kWide = tiles<D, kTileVectors, Last::part, Copy::no, T>(kHeights);
  static constexpr auto kWhole = tiles<D, kTileVectors, Last::whole, Copy::no, T>(kHeights);
  const std::int64_t lanes = lanes_of<T>();
  if (columns == kTileVectors * lanes) return kWhole;
  if (columns > lanes) return kWide;
  return columns > static_cast<std::int64_t>(hn::Lanes(NarrowTag<T>())) ? kSingle : kNarrow;
}

// The depth of slices of several rows.
template <class T>
std::int64_t tile_depth(const MatrixProduct<T>& p) {
  return p.a_column == 1 ? kTileDepth : kTransposedDepth;
}

// A small tile whose right side lies in columns.
constexpr std::int64_t kTransposedElements = 1024;
template <class T>
void transposed_tile(const MatrixProduct<T>& p, T*) {
  HWY_ALIGN T panel[kTransposedElements];
  MatrixProduct<T> one = p;
  one.b_row = p.n > lanes_of<T>() ? kTileVectors * lanes_of<T>() : lanes_of<T>();
  pack_panel(p, one.b_row, panel);
  one.b = panel;
  functions_for<T>(p.n)[static_cast<std::size_t>(p.m - 1)](one, nullptr);
}

template <class T>
TileFunction<T> only_tile(const MatrixProduct<T>& p) {
  const std::int64_t width = kTileVectors * lanes_of<T>();
  if (p.m == 1 || p.m > kTileRows || p.n > width || p.k > tile_depth(p)) return nullptr;
  if (p.b_column == 1) return functions_for<T>(p.n)[static_cast<std::size_t>(p.m - 1)];
  constexpr std::int64_t kSquare = 16 / sizeof(T);  // packed are multiples of it
  return (p.k + kSquare) * width <= kTransposedElements ? &transposed_tile<T> : nullptr;
}

// One slice of k, of several rows.
template <class T>
void tile_slice(const MatrixProduct<T>& p, const ThreadPool& pool) {
  static constexpr auto kCopying =
      tiles<hn::ScalableTag<T>, kTileVectors, Last::whole, Copy::yes, T>(kHeights);
  const std::int64_t lanes = lanes_of<T>();
  // Copying pays from some rows on.
  const bool packs = p.b_column != 1 || (p.m > 3 * kTileRows && p.n > lanes);
  T* const scratch = packs ? scratch_of<T>(pool) : nullptr;
  MatrixProduct<T> panel = p;
  for (std::int64_t column = 0; column < p.n;) {
    panel.n = panel_columns<T>(p.n - column);
    panel.b = p.b + column * p.b_column;
    panel.b_row = p.b_row;
    panel.c = p.c + column;
    column += panel.n;
    const bool copies = packs && p.b_column == 1 && panel.n == kTileVectors * lanes;
    if (packs && !copies) {
      const std::int64_t stride = panel.n > lanes ? kTileVectors * lanes : lanes;
      pack_panel(panel, stride, scratch);
      panel.b = scratch;
      panel.b_row = stride;
    }
    ColumnsAhead<T> ahead;
    if (p.b_column != 1 && column < p.n) {
      ahead = {p.b + column * p.b_column, p.b_column, p.k, panel_columns<T>(p.n - column)};
    }
    tile_panel(panel, functions_for<T>(panel.n), copies ? &kCopying : nullptr, scratch, ahead);
  }
}

// c^T = b^T * a^T: where c has a few columns, as few rows of tiles with all lanes in use.
template <class T>
void flipped_slice(const MatrixProduct<T>& p) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 1> one;
  const std::int64_t width = kTileVectors * lanes_of<T>();
  HWY_ALIGN T sums[hn::MaxLanes(d) * kTileVectors * hn::MaxLanes(d)];
  MatrixProduct<T> panel{p.n,        width, p.k,  p.b,   p.b_column, p.b_row,         p.a,
                         p.a_column, 1,     sums, width, T(1),       Store::overwrite};
  const auto scale = hn::Set(one, p.scale);
  for (std::int64_t row = 0; row < p.m; row += width) {
    panel.n = std::min(p.m - row, width);
    panel.b = p.a + row;
    tile_panel<T>(panel, functions_for<T>(panel.n), nullptr, nullptr, {});
    for (std::int64_t i = 0; i < panel.n; ++i) {
      T* const c = p.c + (row + i) * p.c_row;
      for (std::int64_t j = 0; j < p.n; ++j) {
        const auto sum = hn::LoadU(one, sums + j * width + i);
        hn::StoreU(p.store == Store::overwrite ? hn::Mul(scale, sum)
                                               : hn::MulAdd(scale, sum, hn::LoadU(one, c + j)),
                   one, c + j);
      }
    }
  }
}

template <class T>
bool is_flipped(const MatrixProduct<T>& p) {
  constexpr std::int64_t kLeast = 32;  // rows and steps of k that pay for the detour
  return p.a_row == 1 && p.b_column == 1 && p.n <= lanes_of<T>() && p.m >= kLeast && p.k >= kLeast;
}

template <class T>
HWY_INLINE void slice(const MatrixProduct<T>& p, const ThreadPool& pool) {
  if (p.m == 1) return row_slice(p, scratch_of<T>(pool));
  is_flipped(p) ? flipped_slice(p) : tile_slice(p, pool);
}

template <class T>
void by_tiles(const MatrixProduct<T>& p, const ThreadPool& pool) {
  // A single row's panels are wider; where they are not packed, deep slices keep long sums
  // accurate.
  const std::int64_t row_depth =
      p.b_column == 1 ? 4 * kTileDepth : kTileDepth * kTileVectors / kRowVectors;
  const std::int64_t depth = p.m > 1 ? tile_depth(p) : row_depth;
  if (p.k <= depth) return slice(p, pool);
  MatrixProduct<T> part = p;
  std::int64_t slices = (p.k + depth - 1) / depth;
  for (std::int64_t left = p.k; left > 0; left -= part.k, --slices) {
    part.k = (left + slices - 1) / slices;
    slice(part, pool);
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
