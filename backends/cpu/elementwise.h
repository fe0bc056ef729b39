// How an elementwise function becomes a kernel; for backends/cpu/elementwise_*.cc alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/kernels.h"
#include "backends/cpu/strided.h"

namespace mulgrad::cpu {

template <class T>
concept Floating = std::is_floating_point_v<T>;
template <class T>
concept WholeNumber = std::is_integral_v<T> && !std::is_same_v<T, bool>;

using Results = std::span<std::byte* const>;
using Operands = std::span<const std::byte* const>;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Integers wrap, so they are computed without sign.
template <WholeNumber T>
T wrapped(Unsigned<T> value) {
  return static_cast<T>(value);
}

template <class T>
T larger(T a, T b) {
  if constexpr (Floating<T>) {
    if (a != a || b != b) return a + b;          // NaN
    if (a == b) return std::signbit(a) ? b : a;  // the maximum of -0 and +0 is +0
  }
  return a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  if constexpr (Floating<T>) {
    if (a != a || b != b) return a + b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

// Calls f(std::type_identity<T>{}) for a dtype that has kernels, else returns nothing.
template <class F>
std::optional<Kernel> for_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::i32:
      return f(std::type_identity<std::int32_t>{});
    case DType::i64:
      return f(std::type_identity<std::int64_t>{});
    case DType::i1:
      return f(std::type_identity<bool>{});
    default:
      return std::nullopt;
  }
}

// The result is array 0, packed; operand i is array i + 1.
inline StridedLoop elementwise_loop(std::span<const Type> operands, const Type& result) {
  const std::vector<std::int64_t> sizes = result.shape.sizes();
  std::vector<Strides> strides{row_major(sizes)};
  for (const Type& operand : operands) {
    strides.push_back(broadcast_strides(operand.shape.sizes(), sizes));
  }
  return StridedLoop(sizes, strides);
}

template <class R, class A, class F>
Kernel map_kernel(F f, StridedLoop loop) {
  return [f, loop](Results results, Operands operands) mutable {
    loop.for_each([&](const std::int64_t* at) {
      R* r = reinterpret_cast<R*>(results[0]) + at[0];
      const A* a = reinterpret_cast<const A*>(operands[0]) + at[1];
      const std::int64_t n = loop.length();
      const std::int64_t s = loop.stride(1);
      if (s == 1) {
        for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i]);
      } else {
        for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i * s]);
      }
    });
  };
}

template <class R, class A, class F>
Kernel map2_kernel(F f, StridedLoop loop) {
  return [f, loop](Results results, Operands operands) mutable {
    loop.for_each([&](const std::int64_t* at) {
      R* r = reinterpret_cast<R*>(results[0]) + at[0];
      const A* a = reinterpret_cast<const A*>(operands[0]) + at[1];
      const A* b = reinterpret_cast<const A*>(operands[1]) + at[2];
      const std::int64_t n = loop.length();
      const std::int64_t s = loop.stride(1);
      const std::int64_t t = loop.stride(2);
      if (s == 1 && t == 1) {
        for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i], b[i]);
      } else if (s == 1 && t == 0) {
        const A y = *b;
        for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i], y);
      } else if (s == 0 && t == 1) {
        const A x = *a;
        for (std::int64_t i = 0; i < n; ++i) r[i] = f(x, b[i]);
      } else {
        for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i * s], b[i * t]);
      }
    });
  };
}

// P is the type of the first operand, A of the other two.
template <class R, class P, class A, class F>
Kernel map3_kernel(F f, StridedLoop loop) {
  return [f, loop](Results results, Operands operands) mutable {
    loop.for_each([&](const std::int64_t* at) {
      R* r = reinterpret_cast<R*>(results[0]) + at[0];
      const P* p = reinterpret_cast<const P*>(operands[0]) + at[1];
      const A* a = reinterpret_cast<const A*>(operands[1]) + at[2];
      const A* b = reinterpret_cast<const A*>(operands[2]) + at[3];
      const std::int64_t s = loop.stride(1);
      const std::int64_t t = loop.stride(2);
      const std::int64_t u = loop.stride(3);
      for (std::int64_t i = 0; i < loop.length(); ++i) r[i] = f(p[i * s], a[i * t], b[i * u]);
    });
  };
}

}  // namespace mulgrad::cpu
