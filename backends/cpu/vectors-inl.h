// Vectors of which the first lanes are used.
#if defined(MULGRAD_BACKENDS_CPU_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_VECTORS_INL_H
#undef MULGRAD_BACKENDS_CPU_VECTORS_INL_H
#else
#define MULGRAD_BACKENDS_CPU_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE std::int64_t lanes_of(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}
template <class T>
HWY_INLINE std::int64_t lanes_of() {
  return lanes_of(hn::ScalableTag<T>());
}

// Loads and stores of first lanes touch no memory behind them. Highway's own masked ones do that
// for wide lanes on x86 alone.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3
inline constexpr bool kMasksMemory = HWY_ARCH_X86 != 0;
#else
inline constexpr bool kMasksMemory = false;
#endif

// The first n lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_part(D d, const hn::TFromD<D>* from, std::int64_t n) {
  using T = hn::TFromD<D>;
  if constexpr (kMasksMemory && sizeof(T) >= 4) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, from);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
    if (n > 0) std::memcpy(buffer, from, static_cast<std::size_t>(n) * sizeof(T));
    return hn::Load(d, buffer);
  }
}
template <class D>
HWY_INLINE void store_part(D d, hn::Vec<D> v, hn::TFromD<D>* to, std::int64_t n) {
  using T = hn::TFromD<D>;
  if constexpr (kMasksMemory && sizeof(T) >= 4) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, to);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(D())];
    hn::Store(v, d, buffer);
    if (n > 0) std::memcpy(to, buffer, static_cast<std::size_t>(n) * sizeof(T));
  }
}

// The same for a mask of first lanes that is at hand, and lanes of four bytes or more.
template <class M, class D, class T>
HWY_INLINE hn::Vec<D> load_masked(M mask, D d, const T* from) {
  if constexpr (kMasksMemory) {
    return hn::MaskedLoad(mask, d, from);
  } else {
    return load_part(d, from, static_cast<std::int64_t>(hn::CountTrue(d, mask)));
  }
}
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

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
