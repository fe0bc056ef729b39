// Own products by register tiles, in the vectors of the CPU that runs them: better than BLAS where
// its packing does not pay. Every sum over k runs in an order that depends on the sizes alone.
#pragma once

#include <cstdint>

#include "backends/cpu/matrix_product.h"
#include "backends/cpu/threads.h"

namespace mulgrad::cpu {

// Any sizes but 0. Packs in the pool's scratch.
void tile_product(const MatrixProduct<float>& product, const ThreadPool& pool);
void tile_product(const MatrixProduct<double>& product, const ThreadPool& pool);

// The tile that is the whole of any product with these sizes, strides and way to store, or nullptr
// where it takes more; `columns` is n, `copy` is nullptr. A product of a few elements takes less
// time than finding its tile.
template <class T>
using TileFunction = void (*)(const MatrixProduct<T>& product, T* copy);
TileFunction<float> single_tile(const MatrixProduct<float>& shape);
TileFunction<double> single_tile(const MatrixProduct<double>& shape);

// n dot products of length k: m = 1, a and the columns of b contiguous. Elements of c are `stride`
// apart. Sums of f32 are gathered in f64 from time to time, so that long ones stay accurate.
void dot_products(const MatrixProduct<float>& product, std::int64_t stride);
void dot_products(const MatrixProduct<double>& product, std::int64_t stride);

// k = 1, b contiguous: every row of the result is read and written once.
void outer_product(const MatrixProduct<float>& product);
void outer_product(const MatrixProduct<double>& product);

}  // namespace mulgrad::cpu
