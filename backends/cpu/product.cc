#include "backends/cpu/product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/blas.h"
#include "core/error.h"

namespace mulgrad::cpu {
namespace {

std::int64_t count(std::span<const std::int64_t> sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

// An axis of size 1 may have any stride; BLAS wants the one that a stored matrix has.
MatrixLayout plain_ones(MatrixLayout layout, std::int64_t rows, std::int64_t columns) {
  if (columns == 1) layout.column_stride = 1;
  if (rows == 1)
    layout.row_stride = layout.column_stride == 1 ? std::max<std::int64_t>(columns, 1) : 1;
  return layout;
}

// Walks the batch axes, the last one fastest.
class BatchWalk {
 public:
  explicit BatchWalk(const ProductSpec& spec) : sizes_(spec.batch), at_(sizes_.size(), 0) {
    for (const MatrixLayout* layout : {&spec.lhs, &spec.rhs, &spec.result}) {
      strides_.push_back(layout->batch_strides);
    }
    count_ = count(sizes_);
  }

  // body(a, b, c): the offsets of one product's matrices.
  template <class F>
  void for_each(F body) {
    std::array<std::int64_t, 3> offset = {0, 0, 0};
    for (std::int64_t i = 0; i < count_; ++i) {
      body(offset[0], offset[1], offset[2]);
      for (std::size_t axis = sizes_.size(); axis-- > 0;) {
        const bool wraps = ++at_[axis] == sizes_[axis];
        for (std::size_t side = 0; side < 3; ++side) {
          offset[side] += strides_[side][axis] * (wraps ? 1 - sizes_[axis] : 1);
        }
        if (!wraps) break;
        at_[axis] = 0;
      }
    }
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> at_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::int64_t count_ = 0;
};

template <class T>
Kernel make(const ProductSpec& spec) {
  const T scale = static_cast<T>(spec.scale);
  MatrixProduct<T> shape{spec.m,
                         spec.n,
                         spec.k,
                         nullptr,
                         spec.lhs.row_stride,
                         spec.lhs.column_stride,
                         nullptr,
                         spec.rhs.row_stride,
                         spec.rhs.column_stride,
                         nullptr,
                         spec.result.row_stride,
                         scale,
                         spec.write == ProductWrite::overwrite ? Store::overwrite : Store::add};
  const bool scaled = spec.write == ProductWrite::add_scaled;
  return
      [shape, scaled, walk = BatchWalk(spec)](std::span<std::byte* const> results,
                                              std::span<const std::byte* const> operands) mutable {
        MatrixProduct<T> product = shape;
        const T* a = reinterpret_cast<const T*>(operands[0]);
        const T* b = reinterpret_cast<const T*>(operands[1]);
        T* c = reinterpret_cast<T*>(results[0]);
        if (scaled) product.scale *= *reinterpret_cast<const T*>(operands[2]);
        walk.for_each([&](std::int64_t at_a, std::int64_t at_b, std::int64_t at_c) {
          product.a = a + at_a;
          product.b = b + at_b;
          product.c = c + at_c;
          if (product.m == 0 || product.n == 0) return;
          if (product.k > 0) return blas_product(product);
          if (product.store == Store::add) return;
          for (std::int64_t i = 0; i < product.m; ++i) {
            std::fill_n(product.c + i * product.c_row, product.n, T(0));
          }
        });
      };
}

}  // namespace

Kernel product_kernel(const ProductSpec& spec, std::shared_ptr<ThreadPool> pool) {
  INTERNAL_CHECK(spec.dtype == DType::f32 || spec.dtype == DType::f64);
  ProductSpec canonical = spec;
  canonical.lhs = plain_ones(spec.lhs, spec.m, spec.k);
  canonical.rhs = plain_ones(spec.rhs, spec.k, spec.n);
  canonical.result = plain_ones(spec.result, spec.m, spec.n);
  for (const auto& [name, size] :
       {std::pair("m", canonical.m), std::pair("n", canonical.n), std::pair("k", canonical.k),
        std::pair("the left row stride", canonical.lhs.row_stride),
        std::pair("the left column stride", canonical.lhs.column_stride),
        std::pair("the right row stride", canonical.rhs.row_stride),
        std::pair("the right column stride", canonical.rhs.column_stride),
        std::pair("the result's row stride", canonical.result.row_stride)}) {
    check_blas_size(name, size);
  }
  prepare_blas(pool->threads());
  return spec.dtype == DType::f32 ? make<float>(canonical) : make<double>(canonical);
}

std::string product_name(const ProductSpec& spec) {
  std::string name = "gemm_" + std::string(to_string(spec.dtype)) + " ";
  if (!spec.batch.empty()) name += std::to_string(count(spec.batch)) + "x";
  name += std::to_string(spec.m) + "x" + std::to_string(spec.n) + "x" + std::to_string(spec.k);
  if (spec.write != ProductWrite::overwrite) name += " +=";
  return name;
}

}  // namespace mulgrad::cpu
