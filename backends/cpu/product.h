// Matrix products: from a description, once, the kernel that runs in every step. Which routine
// (BLAS, own tiles, dot products, a rank-one update) and which parts is a function of the
// description and the CPU alone, so results are bit-equal for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/threads.h"
#include "core/dtype.h"
#include "lowering/plan.h"

namespace mulgrad::cpu {

// How a matrix, or a batch of them, lies in memory; strides count elements. At least one of
// row_stride and column_stride is 1, or its axis has size 1. Batch axes may have stride 0.
struct MatrixLayout {
  std::vector<std::int64_t> batch_strides;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

enum class ProductWrite : std::uint8_t {
  overwrite,  // result = scale * lhs * rhs; what it held before never shows, not even NaN
  add,        // result = result + scale * lhs * rhs
  add_scaled  // result = result + scale * s * lhs * rhs, s the one element of operand 2
};

struct ProductSpec {
  DType dtype = DType::f32;         // f32 or f64
  std::vector<std::int64_t> batch;  // sizes of the batch axes
  std::int64_t m = 0, n = 0, k = 0;
  MatrixLayout lhs;     // [m,k]
  MatrixLayout rhs;     // [k,n]
  MatrixLayout result;  // [m,n], column_stride 1
  ProductWrite write = ProductWrite::overwrite;
  double scale = 1;
  // The epilogue, for overwrite: in this order,
  bool bias = false;  // to every row an operand [n] is added,
  bool relu = false;  // the maximum with 0 is taken, NaN staying NaN,
  bool gate = false;  // 0 is taken where an operand, which lies as the result does, is not above 0.
};

// Operands: lhs, rhs, and each if it is asked for: s of add_scaled, bias, gate. Result 0 is the
// product. Any size may be 0. Throws invalid_argument naming the size where a dimension or stride
// does not fit BLAS's integers.
Kernel product_kernel(const ProductSpec& spec, std::shared_ptr<ThreadPool> pool);

// For the printed plan: "gemm_f32 128x10x784", "tile_f32 ...", "gemv_f32 ...", "ger_f32 ...", with
// "4x" before the sizes of a batch, "+=" behind what adds, "(add maximum select)" for the epilogue.
std::string product_name(const ProductSpec& spec);

}  // namespace mulgrad::cpu
