#include "backends/cpu/blas.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <vector>

#include "core/error.h"

#ifdef MULGRAD_HAVE_OPENBLAS
#include <cblas.h>
#else
#include <Eigen/Core>
#endif

#ifdef MULGRAD_OPENBLAS_CHANGES_KERNEL
// OpenBLAS has these in every shared and static library with kernels for several CPUs, in no
// header.
extern "C" {
void gotoblas_dynamic_quit(void);
void gotoblas_dynamic_init(void);
}
#endif
#ifdef MULGRAD_OPENBLAS_HAS_BUFFERS
extern "C" {
void* blas_memory_alloc(int position);
void blas_memory_free(void* buffer);
}
#endif

namespace mulgrad::cpu {
namespace {

#ifdef MULGRAD_HAVE_OPENBLAS
using BlasInt = blasint;
#else
using BlasInt = Eigen::Index;
#endif

// OpenBLAS's x86 kernels without AVX2.
constexpr std::array<std::string_view, 20> kOldKernels = {
    "Katmai", "Coppermine", "Northwood",   "Prescott",  "Banias",     "Atom",         "Core2",
    "Penryn", "Dunnington", "Nehalem",     "Athlon",    "Opteron",    "Opteron_SSE3", "Barcelona",
    "Bobcat", "Nano",       "Sandybridge", "Bulldozer", "Piledriver", "Steamroller"};

#ifdef MULGRAD_HAVE_OPENBLAS

CBLAS_TRANSPOSE flag(std::int64_t column_stride) {
  return column_stride == 1 ? CblasNoTrans : CblasTrans;
}

template <class T, class F>
void call_gemm(const MatrixProduct<T>& p, F gemm) {
  const auto stride = [](std::int64_t row, std::int64_t column) {
    return static_cast<blasint>(column == 1 ? row : column);
  };
  gemm(CblasRowMajor, flag(p.a_column), flag(p.b_column), static_cast<blasint>(p.m),
       static_cast<blasint>(p.n), static_cast<blasint>(p.k), p.scale, p.a,
       stride(p.a_row, p.a_column), p.b, stride(p.b_row, p.b_column),
       p.store == Store::overwrite ? T(0) : T(1), p.c, static_cast<blasint>(p.c_row));
}

#else

template <class T>
void eigen_product(const MatrixProduct<T>& p) {
  using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using View = Eigen::Map<const Matrix, 0, Stride>;
  const View a(p.a, p.m, p.k, Stride(p.a_row, p.a_column));
  const View b(p.b, p.k, p.n, Stride(p.b_row, p.b_column));
  Eigen::Map<Matrix, 0, Stride> c(p.c, p.m, p.n, Stride(p.c_row, 1));
  if (p.store == Store::overwrite) {
    c.noalias() = p.scale * (a * b);
  } else {
    c.noalias() += p.scale * (a * b);
  }
}

#endif

#ifdef MULGRAD_OPENBLAS_CHANGES_KERNEL

// Products of odd sizes, plain and transposed, over NaN, against a plain loop. Whole numbers:
// exact.
bool products_are_right() {
  constexpr std::int64_t m = 37, n = 29, k = 53;
  std::vector<float> a(m * k), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
  for (int form = 0; form < 4; ++form) {
    const auto [a_row, a_column] =
        form % 2 == 0 ? std::pair(k, std::int64_t{1}) : std::pair(std::int64_t{1}, m);
    const auto [b_row, b_column] =
        form / 2 == 0 ? std::pair(n, std::int64_t{1}) : std::pair(std::int64_t{1}, k);
    std::vector<float> c(m * n, std::numeric_limits<float>::quiet_NaN());
    blas_product(MatrixProduct<float>{m, n, k, a.data(), a_row, a_column, b.data(), b_row, b_column,
                                      c.data(), n, 2, Store::overwrite});
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += a[static_cast<std::size_t>(i * a_row + p * a_column)] *
                 b[static_cast<std::size_t>(p * b_row + j * b_column)];
        }
        if (!(c[static_cast<std::size_t>(i * n + j)] == 2 * sum)) return false;
      }
    }
  }
  return true;
}

// OpenBLAS reads its environment once, when it is loaded; this makes it read it again.
void change_kernel(const std::string& name) {
  setenv("OPENBLAS_CORETYPE", name.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
}

void choose_kernel() {
  const std::string present = openblas_get_corename();
  const char* user = std::getenv("OPENBLAS_CORETYPE");
  const std::optional<std::string> better =
      better_kernel(present, vector_level(), user == nullptr ? "" : user);
  if (!better) return;
  change_kernel(*better);
  if (openblas_get_corename() != *better || !products_are_right()) {
    spdlog::debug("OpenBLAS's kernel {} does not work here", *better);
    change_kernel(present);
  }
}

#endif

}  // namespace

VectorLevel vector_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd")) {
    return VectorLevel::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return VectorLevel::avx2;
#endif
  return VectorLevel::other;
}

std::optional<std::string> better_kernel(std::string_view present, VectorLevel cpu,
                                         std::string_view user_setting) {
  const auto same = [&](std::string_view name) {
    // Some versions spell kernels in capitals.
    return std::ranges::equal(name, present, [](char x, char y) {
      return std::tolower(static_cast<unsigned char>(x)) ==
             std::tolower(static_cast<unsigned char>(y));
    });
  };
  if (!user_setting.empty() || std::ranges::none_of(kOldKernels, same)) return std::nullopt;
  switch (cpu) {
    case VectorLevel::avx512:
      return "SkylakeX";
    case VectorLevel::avx2:
      return "Haswell";
    case VectorLevel::other:
      return std::nullopt;
  }
  internal_check_failed("a vector level", __FILE__, __LINE__);
}

void prepare_blas(int threads) {
  static std::once_flag once;
  std::call_once(once, [] {
#ifdef MULGRAD_OPENBLAS_CHANGES_KERNEL
    choose_kernel();
#endif
#ifdef MULGRAD_HAVE_OPENBLAS
    // Results are to be the same on any number of cores, so OpenBLAS may not split by itself.
    openblas_set_num_threads(1);
#endif
    spdlog::debug("Products by {}", blas_kernel());
  });
#ifdef MULGRAD_OPENBLAS_HAS_BUFFERS
  // A product takes a buffer of OpenBLAS's and gives it back; the first `threads` are kept.
  std::vector<void*> buffers;
  for (int i = 0; i < threads; ++i) buffers.push_back(blas_memory_alloc(0));
  for (void* buffer : buffers) blas_memory_free(buffer);
#else
  static_cast<void>(threads);
#endif
}

std::string blas_kernel() {
#ifdef MULGRAD_HAVE_OPENBLAS
  return openblas_get_corename();
#else
  return "Eigen";
#endif
}

void check_blas_size(std::string_view name, std::int64_t size) {
  if (size <= std::numeric_limits<BlasInt>::max()) return;
  throw Error(Category::invalid_argument, "found a product with " + std::string(name) + " = " +
                                              std::to_string(size) + ", expected at most " +
                                              std::to_string(std::numeric_limits<BlasInt>::max()) +
                                              ", the largest integer of BLAS");
}

#ifdef MULGRAD_HAVE_OPENBLAS
void blas_product(const MatrixProduct<float>& product) { call_gemm(product, cblas_sgemm); }
void blas_product(const MatrixProduct<double>& product) { call_gemm(product, cblas_dgemm); }
#else
void blas_product(const MatrixProduct<float>& product) { eigen_product(product); }
void blas_product(const MatrixProduct<double>& product) { eigen_product(product); }
#endif

}  // namespace mulgrad::cpu
