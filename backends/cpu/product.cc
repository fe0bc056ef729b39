#include <algorithm>

#include "backends/cpu/kernels.h"

#ifdef MULGRAD_HAVE_OPENBLAS
#include <cblas.h>
#else
#include <Eigen/Core>
#endif

namespace mulgrad::cpu {
namespace {

#ifdef MULGRAD_HAVE_OPENBLAS

// Results are to be the same on any number of cores, so OpenBLAS may not split a product by itself.
void use_one_thread() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

CBLAS_TRANSPOSE flag(Side side) { return side == Side::plain ? CblasNoTrans : CblasTrans; }

void gemm(const ProductSizes& p, Side lhs, Side rhs, const float* a, const float* b, float* c) {
  const auto n = static_cast<blasint>(p.n);
  const auto lda = static_cast<blasint>(lhs == Side::plain ? p.k : p.m);
  const auto ldb = static_cast<blasint>(rhs == Side::plain ? p.n : p.k);
  cblas_sgemm(CblasRowMajor, flag(lhs), flag(rhs), static_cast<blasint>(p.m), n,
              static_cast<blasint>(p.k), 1, a, lda, b, ldb, 0, c, n);
}
void gemm(const ProductSizes& p, Side lhs, Side rhs, const double* a, const double* b, double* c) {
  const auto n = static_cast<blasint>(p.n);
  const auto lda = static_cast<blasint>(lhs == Side::plain ? p.k : p.m);
  const auto ldb = static_cast<blasint>(rhs == Side::plain ? p.n : p.k);
  cblas_dgemm(CblasRowMajor, flag(lhs), flag(rhs), static_cast<blasint>(p.m), n,
              static_cast<blasint>(p.k), 1, a, lda, b, ldb, 0, c, n);
}

#else

void use_one_thread() {}  // Eigen runs in one thread unless it is built with OpenMP

template <class T>
void gemm(const ProductSizes& p, Side lhs, Side rhs, const T* a, const T* b, T* c) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using View = Eigen::Map<const Matrix>;
  Eigen::Map<Matrix> result(c, p.m, p.n);
  const View x(a, lhs == Side::plain ? p.m : p.k, lhs == Side::plain ? p.k : p.m);
  const View y(b, rhs == Side::plain ? p.k : p.n, rhs == Side::plain ? p.n : p.k);
  if (lhs == Side::plain && rhs == Side::plain) {
    result.noalias() = x * y;
  } else if (lhs == Side::plain) {
    result.noalias() = x * y.transpose();
  } else if (rhs == Side::plain) {
    result.noalias() = x.transpose() * y;
  } else {
    result.noalias() = x.transpose() * y.transpose();
  }
}

#endif

template <class T>
Kernel make(const ProductSizes& sizes, Side lhs, Side rhs) {
  return [sizes, lhs, rhs](std::span<std::byte* const> results,
                           std::span<const std::byte* const> operands) {
    T* c = reinterpret_cast<T*>(results[0]);
    // BLAS leaves the result as it is when nothing is summed.
    if (sizes.k == 0) {
      std::fill_n(c, sizes.batch * sizes.m * sizes.n, T(0));
      return;
    }
    if (sizes.m == 0 || sizes.n == 0) return;
    const T* a = reinterpret_cast<const T*>(operands[0]);
    const T* b = reinterpret_cast<const T*>(operands[1]);
    for (std::int64_t i = 0; i < sizes.batch; ++i) {
      gemm(sizes, lhs, rhs, a + i * sizes.m * sizes.k, b + i * sizes.k * sizes.n,
           c + i * sizes.m * sizes.n);
    }
  };
}

}  // namespace

Kernel product_kernel(DType dtype, const ProductSizes& sizes, Side lhs, Side rhs) {
  use_one_thread();
  INTERNAL_CHECK(dtype == DType::f32 || dtype == DType::f64);
  return dtype == DType::f32 ? make<float>(sizes, lhs, rhs) : make<double>(sizes, lhs, rhs);
}

}  // namespace mulgrad::cpu
