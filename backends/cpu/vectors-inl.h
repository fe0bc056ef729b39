// Vectors of which the first lanes are used, for the routines of tile.h.
#if defined(MULGRAD_BACKENDS_CPU_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MULGRAD_BACKENDS_CPU_VECTORS_INL_H
#undef MULGRAD_BACKENDS_CPU_VECTORS_INL_H
#else
#define MULGRAD_BACKENDS_CPU_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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
