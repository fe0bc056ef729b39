#include "backends/cpu/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tile_f32.cc"
#include <hwy/foreach_target.h>

#include "backends/cpu/dots-inl.h"
#include "backends/cpu/outer-inl.h"
#include "backends/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

void tile_f32(const MatrixProduct<float>& product, const ThreadPool& pool) {
  by_tiles(product, pool);
}
TileFunction<float> only_f32(const MatrixProduct<float>& shape) { return only_tile(shape); }
void dots_f32(const MatrixProduct<float>& product, std::int64_t stride) {
  by_dots(product, stride);
}
void outer_f32(const MatrixProduct<float>& product) { by_rows(product); }

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mulgrad::cpu {

HWY_EXPORT(tile_f32);
HWY_EXPORT(only_f32);
HWY_EXPORT(dots_f32);
HWY_EXPORT(outer_f32);

void tile_product(const MatrixProduct<float>& product, const ThreadPool& pool) {
  HWY_DYNAMIC_DISPATCH(tile_f32)(product, pool);
}
TileFunction<float> single_tile(const MatrixProduct<float>& shape) {
  return HWY_DYNAMIC_DISPATCH(only_f32)(shape);
}
void dot_products(const MatrixProduct<float>& product, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(dots_f32)(product, stride);
}
void outer_product(const MatrixProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(outer_f32)(product);
}

}  // namespace mulgrad::cpu
#endif
