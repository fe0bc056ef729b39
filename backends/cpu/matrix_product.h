// One product of two matrices in memory, as the routines behind product.h see it.
#pragma once

#include <cstdint>

namespace mulgrad::cpu {

enum class Store : std::uint8_t { overwrite, add };

// What happens to the result c behind the product, in this order.
template <class T>
struct Epilogue {
  const T* bias = nullptr;  // c += bias in every row, where there is one
  bool relu = false;        // c = max(c, 0), NaN staying NaN
  const T* gate = nullptr;  // c = gate > 0 ? c : 0, where there is one: [m,n], lies as c does

  bool is_nothing() const { return bias == nullptr && !relu && gate == nullptr; }
};

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
  Epilogue<T> epilogue = {};
};

// The epilogue of element [row, column].
template <class T>
T finished(const MatrixProduct<T>& p, std::int64_t row, std::int64_t column, T value) {
  const Epilogue<T>& epilogue = p.epilogue;
  if (epilogue.bias != nullptr) value += epilogue.bias[column];
  if (epilogue.relu && value <= T(0)) value = T(0);
  if (epilogue.gate != nullptr && !(epilogue.gate[row * p.c_row + column] > T(0))) value = T(0);
  return value;
}

// Columns column .. column + n - 1 of a product.
template <class T>
MatrixProduct<T> columns_of(MatrixProduct<T> p, std::int64_t column, std::int64_t n) {
  p.n = n;
  p.b += column * p.b_column;
  p.c += column;
  if (p.epilogue.bias != nullptr) p.epilogue.bias += column;
  if (p.epilogue.gate != nullptr) p.epilogue.gate += column;
  return p;
}

// Leaves out the first `rows` rows, m staying as it is.
template <class T>
void skip_rows(MatrixProduct<T>& p, std::int64_t rows) {
  p.a += rows * p.a_row;
  p.c += rows * p.c_row;
  if (p.epilogue.gate != nullptr) p.epilogue.gate += rows * p.c_row;
}

}  // namespace mulgrad::cpu
