// One product of two matrices in memory, as the routines behind product.h see it.
#pragma once

#include <cstdint>

namespace mulgrad::cpu {

enum class Store : std::uint8_t { overwrite, add };

// c = scale * a * b, or c += scale * a * b: a is [m,k], b is [k,n], c is [m,n] with rows of
// neighbouring elements. Strides count elements; of a and b at least one is 1.
template <class T>
struct MatrixProduct {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_column;
  const T* b;
  std::int64_t b_row, b_column;
  T* c;
  std::int64_t c_row;
  T scale;
  Store store;
};

}  // namespace mulgrad::cpu
