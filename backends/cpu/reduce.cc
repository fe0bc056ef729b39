#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cpu/elementwise.h"

namespace mulgrad::cpu {
namespace {

// Sums and products of floats accumulate in f64; integers wrap.
template <class T>
struct AccumulatorOf {
  using type = T;
};
template <>
struct AccumulatorOf<float> {
  using type = double;
};
template <WholeNumber T>
struct AccumulatorOf<T> {
  using type = Unsigned<T>;
};

// The loop over the kept axes (array 0: result, array 1: operand) and over the reduced ones.
struct ReduceLoops {
  StridedLoop kept;
  StridedLoop reduced;
  bool empty;  // nothing is reduced into a result
};

ReduceLoops reduce_loops(const Axes& axes, const Type& operand) {
  const std::vector<std::int64_t> sizes = operand.shape.sizes();
  const Strides strides = row_major(sizes);
  std::vector<std::int64_t> kept_sizes;
  std::vector<std::int64_t> reduced_sizes;
  Strides kept;
  Strides reduced;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool is_reduced = std::ranges::count(axes, static_cast<std::int64_t>(i)) > 0;
    (is_reduced ? reduced_sizes : kept_sizes).push_back(sizes[i]);
    (is_reduced ? reduced : kept).push_back(strides[i]);
  }
  const bool empty = product(reduced_sizes) == 0;
  const Strides of_kept[] = {row_major(kept_sizes), std::move(kept)};
  return {StridedLoop(kept_sizes, of_kept), StridedLoop(reduced_sizes, std::span(&reduced, 1)),
          empty};
}

// Starts from the first element, so that a single one is its own reduction, -0 included;
// `identity` stands for none. finish(accumulator) gives the result.
template <class T, class A, class F, class G>
Kernel fold_kernel(ReduceLoops loops, T identity, F combine, G finish) {
  return
      [loops = std::move(loops), identity, combine, finish](
          std::span<std::byte* const> results, std::span<const std::byte* const> operands) mutable {
        T* out = reinterpret_cast<T*>(results[0]);
        const T* in = reinterpret_cast<const T*>(operands[0]);
        const auto reduce_one = [&](const T* x) -> T {
          if (loops.empty) return finish(static_cast<A>(identity));
          bool first = true;
          A total = static_cast<A>(*x);
          const std::int64_t s = loops.reduced.stride(0);
          loops.reduced.for_each([&](const std::int64_t* at) {
            const T* run = x + at[0];
            for (std::int64_t i = first ? 1 : 0; i < loops.reduced.length(); ++i) {
              total = combine(total, static_cast<A>(run[i * s]));
            }
            first = false;
          });
          return finish(total);
        };
        loops.kept.for_each([&](const std::int64_t* at) {
          for (std::int64_t i = 0; i < loops.kept.length(); ++i) {
            const std::int64_t first = at[1] + i * loops.kept.stride(1);
            // A sum of nothing has no memory to point into.
            out[at[0] + i * loops.kept.stride(0)] = reduce_one(in == nullptr ? in : in + first);
          }
        });
      };
}

template <class T>
std::optional<Kernel> number_kernel(Reduction kind, ReduceLoops loops) {
  using A = typename AccumulatorOf<T>::type;
  using Limits = std::numeric_limits<T>;
  const auto same = [](T x) { return x; };
  const auto narrow = [](A x) { return static_cast<T>(x); };
  switch (kind) {
    case Reduction::sum:
      return fold_kernel<T, A>(
          std::move(loops), T(0), [](A a, A b) { return a + b; }, narrow);
    case Reduction::product:
      return fold_kernel<T, A>(
          std::move(loops), T(1), [](A a, A b) { return a * b; }, narrow);
    case Reduction::max:
      return fold_kernel<T, T>(
          std::move(loops), Floating<T> ? -Limits::infinity() : Limits::lowest(),
          [](T a, T b) { return larger(a, b); }, same);
    case Reduction::min:
      return fold_kernel<T, T>(
          std::move(loops), Floating<T> ? Limits::infinity() : Limits::max(),
          [](T a, T b) { return smaller(a, b); }, same);
    case Reduction::and_:
    case Reduction::or_:
      break;
  }
  if constexpr (WholeNumber<T>) {
    if (kind == Reduction::and_) {
      return fold_kernel<T, T>(
          std::move(loops), T(-1), [](T a, T b) { return static_cast<T>(a & b); }, same);
    }
    return fold_kernel<T, T>(
        std::move(loops), T(0), [](T a, T b) { return static_cast<T>(a | b); }, same);
  }
  return std::nullopt;
}

std::optional<Kernel> logical_kernel(Reduction kind, ReduceLoops loops) {
  const auto same = [](bool x) { return x; };
  if (kind == Reduction::and_) {
    return fold_kernel<bool, bool>(
        std::move(loops), true, [](bool a, bool b) { return a && b; }, same);
  }
  if (kind == Reduction::or_) {
    return fold_kernel<bool, bool>(
        std::move(loops), false, [](bool a, bool b) { return a || b; }, same);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Kernel> reduce_kernel(Reduction kind, const Axes& axes, const Type& operand) {
  ReduceLoops loops = reduce_loops(axes, operand);
  return for_dtype(operand.dtype, [&]<class T>(std::type_identity<T>) -> std::optional<Kernel> {
    if constexpr (std::is_same_v<T, bool>) {
      return logical_kernel(kind, std::move(loops));
    } else {
      return number_kernel<T>(kind, std::move(loops));
    }
  });
}

std::optional<Kernel> mean_kernel(const Axes& axes, const Type& operand) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= operand.shape[axis].size();
  ReduceLoops loops = reduce_loops(axes, operand);
  return for_dtype(operand.dtype, [&]<class T>(std::type_identity<T>) -> std::optional<Kernel> {
    if constexpr (Floating<T>) {
      // The sum and the count are rounded to T before the division: that is what mean means.
      return fold_kernel<T, double>(
          std::move(loops), T(0), [](double a, double b) { return a + b; },
          [divisor = static_cast<T>(count)](double sum) { return static_cast<T>(sum) / divisor; });
    }
    return std::nullopt;
  });
}

}  // namespace mulgrad::cpu
