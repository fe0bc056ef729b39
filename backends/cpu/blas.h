// BLAS for large products: OpenBLAS where the build found it, with a kernel that fits the CPU, else
// Eigen's products.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/cpu/matrix_product.h"

namespace mulgrad::cpu {

// What matters of the CPU for OpenBLAS's kernels.
enum class VectorLevel : std::uint8_t {
  other,
  avx2,   // with FMA
  avx512  // F, DQ, BW, VL and CD
};
VectorLevel vector_level();  // of the CPU that runs this

// The kernel to change OpenBLAS to, or nothing to leave the one that it has. It is changed only
// where OpenBLAS has taken a kernel from before AVX2, as an old one does on a CPU that it does not
// know, though the CPU has more, and where the user has set none (`user_setting`: the value of
// OPENBLAS_CORETYPE, empty when unset).
std::optional<std::string> better_kernel(std::string_view present, VectorLevel cpu,
                                         std::string_view user_setting);

// Makes BLAS ready, once: chooses its kernel, keeps it to one thread, and takes the memory that
// `threads` threads at a time need in it, so that no later call does. No other thread may be in
// BLAS at the first call.
void prepare_blas(int threads);
// The kernel in use after that: "SkylakeX", "Haswell", ..., or "Eigen".
std::string blas_kernel();

// Throws invalid_argument naming the size where one does not fit BLAS's integers.
void check_blas_size(std::string_view name, std::int64_t size);
// No size may be 0.
void blas_product(const MatrixProduct<float>& product);
void blas_product(const MatrixProduct<double>& product);

}  // namespace mulgrad::cpu
