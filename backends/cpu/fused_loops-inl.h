// Loops over arrays with vector operations, compiled once per instruction set.
#if defined(MULGRAD_BACKENDS_CPU_FUSED_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_FUSED_LOOPS_INL_H_
#undef MULGRAD_BACKENDS_CPU_FUSED_LOOPS_INL_H_
#else
#define MULGRAD_BACKENDS_CPU_FUSED_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstring>
#include <utility>

#include "backends/cpu/fused_functions.h"
#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Lanes = hn::ScalableTag<T>;

// Whether lanes can be permuted, and vectors be members.
#undef MULGRAD_PERMUTES
#define MULGRAD_PERMUTES (HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE)

// What an operand is, as lanes of the loop's type T: `at` gives lanes i, i + 1 ..., `part` the
// first n of them.
template <class T>
struct Values {
  const T* p;
  Values(const std::byte* bytes, const Block&) : p(reinterpret_cast<const T*>(bytes)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t i) const {
    return hn::LoadU(d, p + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D d, std::int64_t i, std::int64_t n) const {
    return load_part(d, p + i, n);
  }
};

template <class T>
struct Splat {
  T value;
  Splat(const std::byte* bytes, const Block&) : value(*reinterpret_cast<const T*>(bytes)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t) const {
    return hn::Set(d, value);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D d, std::int64_t, std::int64_t) const {
    return hn::Set(d, value);
  }
};

// How many rows of so many columns make a vector; 0 where it is no whole number, or where vectors
// cannot be permuted.
template <class T>
HWY_INLINE std::int64_t rows_in_vector([[maybe_unused]] std::int64_t columns) {
#if MULGRAD_PERMUTES
  const std::int64_t lanes = lanes_of(Lanes<T>());
  return columns > 0 && columns <= lanes && lanes % columns == 0 ? lanes / columns : 0;
#else
  return 0;
#endif
}

#if MULGRAD_PERMUTES
// For rows that make whole vectors, so that the number of columns is a power of two.
template <class T>
struct ShortRows {
  hn::Vec<Lanes<T>> tiled;
  HWY_INLINE ShortRows(const std::byte* bytes, const Block& block) {
    const Lanes<T> d;
    const hn::RebindToSigned<Lanes<T>> di;
    const auto last = static_cast<hn::TFromD<decltype(di)>>(block.columns - 1);
    const auto v = load_part(d, reinterpret_cast<const T*>(bytes), block.columns);
    const auto column = hn::And(hn::Iota(di, 0), hn::Set(di, last));
    tiled = hn::TableLookupLanes(v, hn::IndicesFromVec(d, column));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> at(D, std::int64_t) const {
    return tiled;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D, std::int64_t, std::int64_t) const {
    return tiled;
  }
};

template <class T>
struct ShortColumns {
  const T* p;
  int shift;
  HWY_INLINE ShortColumns(const std::byte* bytes, const Block& block)
      : p(reinterpret_cast<const T*>(bytes)),
        shift(std::countr_zero(static_cast<std::uint64_t>(block.columns))) {}
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t i) const {
    return part(d, i, lanes_of(d));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D d, std::int64_t i, std::int64_t n) const {
    const auto row = hn::ShiftRightSame(hn::Iota(hn::RebindToSigned<D>(), 0), shift);
    const std::int64_t rows = ((n - 1) >> shift) + 1;
    return hn::TableLookupLanes(load_part(d, p + (i >> shift), rows), hn::IndicesFromVec(d, row));
  }
};
#endif

// For rows of whole vectors, the number of columns being a power of two. There are no parts.
template <class T>
struct LongRows {
  const T* p;
  std::int64_t last;
  LongRows(const std::byte* bytes, const Block& block)
      : p(reinterpret_cast<const T*>(bytes)), last(block.columns - 1) {}
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t i) const {
    return hn::LoadU(d, p + (i & last));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D d, std::int64_t, std::int64_t) const {
    return hn::Zero(d);
  }
};

template <class T>
struct LongColumns {
  const T* p;
  int shift;
  LongColumns(const std::byte* bytes, const Block& block)
      : p(reinterpret_cast<const T*>(bytes)),
        shift(std::countr_zero(static_cast<std::uint64_t>(block.columns))) {}
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t i) const {
    return hn::Set(d, p[i >> shift]);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> part(D d, std::int64_t, std::int64_t) const {
    return hn::Zero(d);
  }
};

// Bytes 0 and 1 as masks of lanes of T.
struct Truths {
  const std::uint8_t* p;
  Truths(const std::byte* bytes, const Block&) : p(reinterpret_cast<const std::uint8_t*>(bytes)) {}
  template <class D>
  static HWY_INLINE hn::Mask<D> masked(D d, hn::Vec<hn::Rebind<std::uint8_t, D>> bytes) {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<std::uint32_t, D> d32;
    const auto words = hn::PromoteTo(d32, bytes);
    if constexpr (sizeof(hn::TFromD<D>) == 8) {
      return hn::RebindMask(d, hn::Ne(hn::PromoteTo(du, words), hn::Zero(du)));
    } else {
      return hn::RebindMask(d, hn::Ne(words, hn::Zero(du)));
    }
  }
  template <class D>
  HWY_INLINE hn::Mask<D> at(D d, std::int64_t i) const {
    return masked(d, hn::LoadU(hn::Rebind<std::uint8_t, D>(), p + i));
  }
  template <class D>
  HWY_INLINE hn::Mask<D> part(D d, std::int64_t i, std::int64_t n) const {
    return masked(d, load_part(hn::Rebind<std::uint8_t, D>(), p + i, n));
  }
};

// Where results go.
template <class T, Tail kTail>
struct ToValues {
  T* p;
  explicit ToValues(std::byte* bytes) : p(reinterpret_cast<T*>(bytes)) {}
  template <class D>
  HWY_INLINE void at(D d, std::int64_t i, hn::Vec<D> v) const {
    hn::StoreU(v, d, p + i);
  }
  template <class D>
  HWY_INLINE void part(D d, std::int64_t i, std::int64_t n, hn::Vec<D> v) const {
    if constexpr (kTail == Tail::whole) {
      hn::StoreU(v, d, p + i);
    } else {
      store_part(d, v, p + i, n);
    }
  }
};

template <class T, Tail kTail>
struct ToTruths {
  using Bytes = ToValues<std::uint8_t, kTail>;
  Bytes to;
  explicit ToTruths(std::byte* bytes) : to(bytes) {}
  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<std::uint8_t, D>> bytes(D, hn::Mask<D> mask) {
    const hn::RebindToUnsigned<D> du;
    const auto ones = hn::IfThenElseZero(hn::RebindMask(du, mask), hn::Set(du, 1));
    return hn::TruncateTo(hn::Rebind<std::uint8_t, D>(), ones);
  }
  template <class D>
  HWY_INLINE void at(D d, std::int64_t i, hn::Mask<D> mask) const {
    to.at(hn::Rebind<std::uint8_t, D>(), i, bytes(d, mask));
  }
  template <class D>
  HWY_INLINE void part(D d, std::int64_t i, std::int64_t n, hn::Mask<D> mask) const {
    to.part(hn::Rebind<std::uint8_t, D>(), i, n, bytes(d, mask));
  }
};

// to = F::apply(d, from...) for n elements, in lanes of T.
template <class T, class F, class To, class... From>
HWY_INLINE void map(std::int64_t n, To to, From... from) {
  const Lanes<T> d;
  const std::int64_t lanes = lanes_of(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) to.at(d, i, F::apply(d, from.at(d, i)...));
  if (i < n) to.part(d, i, n - i, F::apply(d, from.part(d, i, n - i)...));
}

template <class T, class F, class To, class... From, std::size_t... kOperand>
HWY_INLINE void map_bytes(std::byte* r, const std::array<const std::byte*, 3>& operands,
                          std::int64_t n, const Block& block, std::index_sequence<kOperand...>) {
  map<T, F>(n, To(r), From(operands[kOperand], block)...);
}
template <class T, class F, class To, class... From>
void mapped(std::byte* r, const std::byte* a, const std::byte* b, const std::byte* c,
            std::int64_t n, const Block& block) {
  map_bytes<T, F, To, From...>(r, {a, b, c}, n, block, std::index_sequence_for<From...>());
}

// The function with operands From and results of the kind To, in lanes of T.
template <template <class, Tail> class To, class T, class F, class... From>
BlockFunction function_to(const FunctionKey& key) {
  if (key.tail == Tail::whole) return mapped<T, F, To<T, Tail::whole>, From...>;
  return mapped<T, F, To<T, Tail::exact>, From...>;
}
template <class T, class F, class... From>
BlockFunction to_values(const FunctionKey& key) {
  return function_to<ToValues, T, F, From...>(key);
}
template <class T, class F, class... From>
BlockFunction to_truths(const FunctionKey& key) {
  return function_to<ToTruths, T, F, From...>(key);
}

// The larger one: NaN where one is NaN, and of two zeros +0.
struct MaximumOp {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    const V larger = hn::IfThenElse(hn::Gt(a, b), a, b);  // b where that is NaN
    const V ordered = hn::IfThenElse(hn::IsNaN(a), a, larger);
    return hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), ordered);
  }
};
struct MinimumOp {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    const V smaller = hn::IfThenElse(hn::Lt(a, b), a, b);
    const V ordered = hn::IfThenElse(hn::IsNaN(a), a, smaller);
    return hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), ordered);
  }
};
struct AddOp {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Add(a, b);
  }
};

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
