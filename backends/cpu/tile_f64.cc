#include "backends/cpu/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tile_f64.cc"
#include <hwy/foreach_target.h>

#include "backends/cpu/dots-inl.h"
#include "backends/cpu/outer-inl.h"
#include "backends/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {

void tile_f64(const MatrixProduct<double>& product, const ThreadPool& pool) {
  by_tiles(product, pool);
}
TileFunction<double> only_f64(const MatrixProduct<double>& shape) { return only_tile(shape); }
void dots_f64(const MatrixProduct<double>& product, std::int64_t stride) {
  by_dots(product, stride);
}
void outer_f64(const MatrixProduct<double>& product) { by_rows(product); }

}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mulgrad::cpu {

HWY_EXPORT(tile_f64);
HWY_EXPORT(only_f64);
HWY_EXPORT(dots_f64);
HWY_EXPORT(outer_f64);

void tile_product(const MatrixProduct<double>& product, const ThreadPool& pool) {
  HWY_DYNAMIC_DISPATCH(tile_f64)(product, pool);
}
TileFunction<double> single_tile(const MatrixProduct<double>& shape) {
  return HWY_DYNAMIC_DISPATCH(only_f64)(shape);
}
void dot_products(const MatrixProduct<double>& product, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(dots_f64)(product, stride);
}
void outer_product(const MatrixProduct<double>& product) {
  HWY_DYNAMIC_DISPATCH(outer_f64)(product);
}

}  // namespace mulgrad::cpu
#endif
