// The routines of tile.h for one vector instruction set; read once for each by the .cc files.
#if defined(MULGRAD_BACKENDS_CPU_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_TILE_INL_H
#undef MULGRAD_BACKENDS_CPU_TILE_INL_H
#else
#define MULGRAD_BACKENDS_CPU_TILE_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "backends/cpu/dots-inl.h"
#include "backends/cpu/matrix_product.h"
#include "backends/cpu/pack-inl.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/tile.h"
#include "backends/cpu/vectors-inl.h"

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

// Columns of a tile, and of a row of a packed panel of n columns.
template <class T>
std::int64_t tile_width() {
  return kTileVectors * lanes_of<T>();
}
template <class T>
std::int64_t packed_row(std::int64_t n) {
  return n > lanes_of<T>() ? tile_width<T>() : lanes_of<T>();
}

// The last vector of a row: all of it, or its first lanes alone.
enum class Last : std::uint8_t { whole, part };

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
  const auto load = [&](const T* row, int v) HWY_ATTR {
    return v < kWhole ? hn::LoadU(d, row + v * lanes) : load_masked(last, d, row + v * lanes);
  };
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
        sums[0][i][v] = hn::MulAdd(scale, sums[0][i][v], load(from, v));
      }
    }
  }
  const Epilogue<T>& epilogue = p.epilogue;
  if (epilogue.bias != nullptr) {
    HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
      const V bias = load(epilogue.bias, v);
      HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
        sums[0][i][v] = hn::Add(sums[0][i][v], bias);
      }
    }
  }
  if (epilogue.relu) {
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i) {
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        V& sum = sums[0][i][v];  // not Max, which loses NaN
        sum = hn::IfThenZeroElse(hn::Le(sum, hn::Zero(d)), sum);
      }
    }
  }
  if (epilogue.gate != nullptr) {
    const T* gate = epilogue.gate;
    HWY_UNROLL(16) for (int i = 0; i < kRows; ++i, gate += c_row) {
      HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
        const auto open = hn::Gt(load(gate, v), hn::Zero(d));
        sums[0][i][v] = hn::IfThenElseZero(open, sums[0][i][v]);
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

template <class T>
using TileFunctions = std::array<TileFunction<T>, kTileRows>;

// Calls use(height) for blocks of rows of about equal height.
template <class F>
HWY_INLINE void for_each_block(std::int64_t rows, F use) {
  std::int64_t blocks = (rows + kTileRows - 1) / kTileRows;
  const std::int64_t low = rows / blocks;
  std::int64_t higher = rows - low * blocks;
  for (; blocks > 0; --blocks, --higher) use(low + (higher > 0 ? 1 : 0));
}

// Rows by tiles. With `copying`, the first one reads the right side where it lies and copies it,
// the others read the copy.
template <class T>
HWY_INLINE void tile_panel(MatrixProduct<T> panel, const TileFunctions<T>& functions,
                           const TileFunctions<T>* copying, T* copy, ColumnsAhead<T> ahead) {
  const std::int64_t share = ahead.share((panel.m + kTileRows - 1) / kTileRows);
  for_each_block(panel.m, [&](std::int64_t height) {
    ahead.fetch(share);
    const auto at = static_cast<std::size_t>(height - 1);
    if (copying != nullptr) {
      (*copying)[at](panel, copy);
      copying = nullptr;
      panel.b = copy;
      panel.b_row = tile_width<T>();
    } else {
      functions[at](panel, nullptr);
    }
    skip_rows(panel, height);
  });
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
  if (left >= tile_width<T>()) return tile_width<T>();
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
  for (std::int64_t column = 0; column < p.n; column += kRowVectors * lanes) {
    MatrixProduct<T> panel = columns_of(p, column, std::min(p.n - column, kRowVectors * lanes));
    const std::int64_t vectors = (panel.n + lanes - 1) / lanes;
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
  if (columns == tile_width<T>()) return kWhole;
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
  one.b_row = packed_row<T>(p.n);
  pack_panel(p, one.b_row, panel);
  one.b = panel;
  functions_for<T>(p.n)[static_cast<std::size_t>(p.m - 1)](one, nullptr);
}

template <class T>
TileFunction<T> only_tile(const MatrixProduct<T>& p) {
  const std::int64_t width = tile_width<T>();
  if (p.m == 1 || p.m > kTileRows || p.n > width || p.k > tile_depth(p)) return nullptr;
  if (p.b_column == 1) return functions_for<T>(p.n)[static_cast<std::size_t>(p.m - 1)];
  constexpr std::int64_t kSquare = 16 / sizeof(T);  // packed are multiples of it
  return (p.k + kSquare) * width <= kTransposedElements ? &transposed_tile<T> : nullptr;
}

// c^T = b^T * a^T: where c has a few columns, as few rows of tiles with all lanes in use.
template <class T>
void flipped_slice(const MatrixProduct<T>& p) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 1> one;
  const std::int64_t width = tile_width<T>();
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
        auto sum = hn::LoadU(one, sums + j * width + i);
        sum = p.store == Store::overwrite ? hn::Mul(scale, sum)
                                          : hn::MulAdd(scale, sum, hn::LoadU(one, c + j));
        c[j] = finished(p, row + i, j, hn::GetLane(sum));
      }
    }
  }
}

// Columns that would leave many lanes idle: by vectors along the rows or along k, as the left side
// lies. False, and nothing done, where that does not pay.
template <class T>
bool few_columns(const MatrixProduct<T>& p, const ThreadPool& pool) {
  constexpr std::int64_t kLeastRows = 32;
  constexpr std::int64_t kLeastFlipped = 32;  // steps of k
  constexpr std::int64_t kDotCost = 8;        // of adding up the lanes, in multiply-adds
  const std::int64_t lanes = lanes_of<T>();
  const auto narrow = static_cast<std::int64_t>(hn::Lanes(NarrowTag<T>()));
  const std::int64_t vector = p.n <= narrow ? narrow : lanes;  // lanes that a tile would use
  if (p.m < kLeastRows || p.n >= lanes) return false;
  if (p.a_row == 1 && p.b_column == 1 && p.k >= kLeastFlipped && 4 * p.n <= 3 * vector) {
    flipped_slice(p);
  } else if (p.a_column == 1 && p.n * (p.k + kDotCost * lanes) < p.k * vector) {
    dots_slice(p, scratch_of<T>(pool));
  } else {
    return false;
  }
  return true;
}

// Is the right side so small that it stays in the first-level cache as a whole?
template <class T>
bool is_short(const MatrixProduct<T>& p) {
  constexpr std::int64_t kMostBytes = 24 * 1024;
  constexpr std::int64_t kMostSteps = 32;
  return p.k <= kMostSteps && p.n > 2 * tile_width<T>() &&
         p.k * p.n * static_cast<std::int64_t>(sizeof(T)) <= kMostBytes;
}

// A short product into many columns: block by block of rows, so that the result is written line by
// line.
template <class T>
void short_slice(const MatrixProduct<T>& p, const ThreadPool& pool) {
  MatrixProduct<T> block = p;
  if (p.b_column != 1) {
    const std::int64_t width = tile_width<T>();
    T* const scratch = scratch_of<T>(pool);
    block.b = scratch;
    block.b_row = (p.n + width - 1) / width * width;
    block.b_column = 1;
    pack_panel(p, block.b_row, scratch);
  }
  for_each_block(p.m, [&](std::int64_t height) {
    const auto at = static_cast<std::size_t>(height - 1);
    for (std::int64_t column = 0; column < p.n;) {
      const std::int64_t columns = panel_columns<T>(p.n - column);
      functions_for<T>(columns)[at](columns_of(block, column, columns), nullptr);
      column += columns;
    }
    skip_rows(block, height);
  });
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
  for (std::int64_t column = 0; column < p.n;) {
    MatrixProduct<T> panel = columns_of(p, column, panel_columns<T>(p.n - column));
    column += panel.n;
    if (few_columns(panel, pool)) continue;
    const bool copies = packs && p.b_column == 1 && panel.n == tile_width<T>();
    if (packs && !copies) {
      const std::int64_t row = packed_row<T>(panel.n);
      pack_panel(panel, row, scratch);
      panel.b = scratch;
      panel.b_row = row;
    }
    ColumnsAhead<T> ahead;
    if (p.b_column != 1 && column < p.n) {
      ahead = {p.b + column * p.b_column, p.b_column, p.k, panel_columns<T>(p.n - column)};
    }
    tile_panel(panel, functions_for<T>(panel.n), copies ? &kCopying : nullptr, scratch, ahead);
  }
}

template <class T>
HWY_INLINE void slice(const MatrixProduct<T>& p, const ThreadPool& pool) {
  if (p.m == 1) return row_slice(p, scratch_of<T>(pool));
  is_short(p) ? short_slice(p, pool) : tile_slice(p, pool);
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
    part.epilogue = slices == 1 ? p.epilogue : Epilogue<T>();
    slice(part, pool);
    part.a += part.k * p.a_column;
    part.b += part.k * p.b_row;
    part.store = Store::add;
  }
}

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
