// Fused loops beside the same loops written by hand. The counters: nanoseconds a call of both, and
// the ratio.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/fused.h"
#include "bench/turns.h"

// Before a loop whose iterations touch no memory of each other.
#ifdef __clang__
#define MULGRAD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MULGRAD_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace mulgrad::cpu {
namespace {

template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}  // NOLINT
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const Aligned&) const { return true; }
};
using Floats = std::vector<float, Aligned<float>>;  // as in a plan

// A loop that is being written down; values are f32 unless stated.
class Maker {
 public:
  Maker(std::int64_t rows, std::int64_t columns) : loop_{rows, columns, {}, {}, {}} {}
  FusedArgument input(Extent extent, DType dtype = DType::f32) {
    loop_.inputs.push_back({dtype, extent});
    return FromInput{static_cast<std::int32_t>(loop_.inputs.size() - 1)};
  }
  FusedArgument step(Op op, const FusedArguments& arguments, Extent extent = Extent::full,
                     DType dtype = DType::f32) {
    loop_.steps.push_back({std::move(op), arguments, dtype, extent});
    return FromStep{static_cast<std::int32_t>(loop_.steps.size() - 1)};
  }
  void result(const FusedArgument& step) {
    loop_.results.push_back(std::get<FromStep>(step).index);
  }
  const FusedLoop& loop() const { return loop_; }

 private:
  FusedLoop loop_;
};

Literal number(double value) { return Literal::from_double(DType::f32, value); }
Reduce sum() { return {Reduction::sum, {}}; }

Floats random_floats(std::int64_t n) {
  Floats values(static_cast<std::size_t>(n));
  std::uint32_t bits = 12345;
  for (float& value : values) {
    bits = bits * 1664525U + 1013904223U;
    value = static_cast<float>(bits >> 8) * 0x1p-23F - 1;
  }
  return values;
}

// A fused loop, what it works on, and a function that does the same with the same arrays.
struct Chain {
  FusedLoop loop;
  std::function<void(std::span<float* const> results, std::span<const float* const> inputs)> hand;
  bool positive = false;  // what the inputs are
};

std::int64_t elements(const FusedLoop& loop, Extent extent) {
  return (extent == Extent::full || extent == Extent::column ? loop.rows : 1) *
         (extent == Extent::full || extent == Extent::row ? loop.columns : 1);
}

void compare(benchmark::State& state, const Chain& chain) {
  const FusedLoop& loop = chain.loop;
  const Kernel kernel = fused_kernel(loop);
  std::vector<Floats> memory;
  std::vector<const float*> inputs;
  std::vector<float*> results;
  std::vector<const std::byte*> input_bytes;
  std::vector<std::byte*> result_bytes;
  memory.reserve(loop.inputs.size() + loop.results.size());
  for (const FusedInput& input : loop.inputs) {
    memory.push_back(random_floats(elements(loop, input.extent)));
    if (chain.positive) {
      for (float& x : memory.back()) x = std::abs(x);
    }
    if (input.extent == Extent::scalar) memory.back()[0] = 0.5F;
    inputs.push_back(memory.back().data());
    input_bytes.push_back(reinterpret_cast<const std::byte*>(inputs.back()));
  }
  for (const std::int32_t step : loop.results) {
    const Extent extent = loop.steps[static_cast<std::size_t>(step)].extent;
    memory.emplace_back(static_cast<std::size_t>(elements(loop, extent)));
    results.push_back(memory.back().data());
    result_bytes.push_back(reinterpret_cast<std::byte*>(results.back()));
  }
  const auto repeated = [](auto run) {
    return [run](int times) {
      for (int i = 0; i < times; ++i) {
        run();
        benchmark::ClobberMemory();
      }
      return 0.0;
    };
  };
  bench::Contender contenders[] = {{repeated([&] { kernel(result_bytes, input_bytes); })},
                                   {repeated([&] { chain.hand(results, inputs); })}};
  for (auto _ : state) bench::take_turns(contenders, 0.1);
  state.counters["ours_ns"] = contenders[0].best * 1e3;
  state.counters["hand_ns"] = contenders[1].best * 1e3;
  state.counters["ratio"] = contenders[0].best / contenders[1].best;
}

Chain bias_relu(std::int64_t rows, std::int64_t columns) {
  Maker m(rows, columns);
  const auto x = m.input(Extent::full), bias = m.input(Extent::row);
  m.result(m.step(Maximum{}, {m.step(Add{}, {x, bias}), number(0)}));
  return {m.loop(), [=](auto results, auto inputs) {
            for (std::int64_t i = 0; i < rows; ++i) {
              const float* a = inputs[0] + i * columns;
              const float* b = inputs[1];
              float* r = results[0] + i * columns;
              for (std::int64_t j = 0; j < columns; ++j) {
                const float y = a[j] + b[j];
                r[j] = y < 0 ? 0 : y;
              }
            }
          }};
}

Chain relu_derivative(std::int64_t rows, std::int64_t columns) {
  Maker m(rows, columns);
  const auto x = m.input(Extent::full), g = m.input(Extent::full);
  const auto positive = m.step(Compare{Comparison::GT}, {x, number(0)}, Extent::full, DType::i1);
  m.result(m.step(Select{}, {positive, g, number(0)}));
  return {m.loop(), [=](auto results, auto inputs) {
            const float* x = inputs[0];
            const float* g = inputs[1];
            float* r = results[0];
            for (std::int64_t i = 0; i < rows * columns; ++i) r[i] = x[i] > 0 ? g[i] : 0;
          }};
}

// The loss and the gradient, with the labels as a column of floats.
Chain softmax_cross_entropy(std::int64_t rows, std::int64_t columns) {
  Maker m(rows, columns);
  constexpr Extent kColumn = Extent::column;
  const auto x = m.input(Extent::full), label = m.input(kColumn), classes = m.input(Extent::row);
  const auto one_hot =
      m.step(Convert{DType::f32},
             {m.step(Compare{Comparison::EQ}, {label, classes}, Extent::full, DType::i1)});
  const auto largest = m.step(Reduce{Reduction::max, {}}, {x}, kColumn);
  const auto z = m.step(Subtract{}, {x, largest});
  const auto e = m.step(Exponential{}, {z});
  const auto total = m.step(sum(), {e}, kColumn);
  const auto picked = m.step(sum(), {m.step(Multiply{}, {one_hot, z})}, kColumn);
  const auto loss = m.step(Subtract{}, {m.step(Log{}, {total}, kColumn), picked}, kColumn);
  const auto p = m.step(Divide{}, {e, total});
  m.result(m.step(sum(), {loss}, Extent::scalar));
  m.result(m.step(Divide{}, {m.step(Subtract{}, {p, one_hot}), number(static_cast<double>(rows))}));
  return {m.loop(), [=](auto results, auto inputs) {
            double loss = 0;
            for (std::int64_t i = 0; i < rows; ++i) {
              const float* z = inputs[0] + i * columns;
              float* d = results[1] + i * columns;
              const float largest = *std::max_element(z, z + columns);
              float total = 0;
              for (std::int64_t j = 0; j < columns; ++j) total += d[j] = std::exp(z[j] - largest);
              for (std::int64_t j = 0; j < columns; ++j) {
                const bool hot = inputs[1][i] == inputs[2][j];
                if (hot) loss += std::log(total) - (z[j] - largest);
                d[j] = (d[j] / total - (hot ? 1.0F : 0.0F)) / static_cast<float>(rows);
              }
            }
            results[0][0] = static_cast<float>(loss);
          }};
}

Chain gelu(std::int64_t n) {
  Maker m(n, 1);
  const auto x = m.input(Extent::full);
  const auto scaled = m.step(Multiply{}, {x, number(std::sqrt(0.5))});
  const auto phi =
      m.step(Multiply{}, {m.step(Add{}, {m.step(Erf{}, {scaled}), number(1)}), number(0.5)});
  m.result(m.step(Multiply{}, {x, phi}));
  return {m.loop(), [=](auto results, auto inputs) {
            for (std::int64_t i = 0; i < n; ++i) {
              const float x = inputs[0][i];
              results[0][i] = x * ((std::erf(x * static_cast<float>(std::sqrt(0.5))) + 1) * 0.5F);
            }
          }};
}

Chain layer_norm(std::int64_t rows, std::int64_t columns) {
  Maker m(rows, columns);
  constexpr Extent kColumn = Extent::column;
  const auto x = m.input(Extent::full), scale = m.input(Extent::row), shift = m.input(Extent::row);
  const Literal count = number(static_cast<double>(columns));
  const auto mean = m.step(Divide{}, {m.step(sum(), {x}, kColumn), count}, kColumn);
  const auto centered = m.step(Subtract{}, {x, mean});
  const auto squares = m.step(sum(), {m.step(Multiply{}, {centered, centered})}, kColumn);
  const auto variance = m.step(Divide{}, {squares, count}, kColumn);
  const auto inverse = m.step(Rsqrt{}, {m.step(Add{}, {variance, number(1e-5)}, kColumn)}, kColumn);
  const auto normal = m.step(Multiply{}, {centered, inverse});
  m.result(m.step(Add{}, {m.step(Multiply{}, {normal, scale}), shift}));
  return {m.loop(), [=](auto results, auto inputs) {
            for (std::int64_t i = 0; i < rows; ++i) {
              const float* x = inputs[0] + i * columns;
              float* r = results[0] + i * columns;
              float mean = 0, variance = 0;
              for (std::int64_t j = 0; j < columns; ++j) mean += x[j];
              mean /= static_cast<float>(columns);
              for (std::int64_t j = 0; j < columns; ++j) {
                variance += (x[j] - mean) * (x[j] - mean);
              }
              const float inverse = 1 / std::sqrt(variance / static_cast<float>(columns) + 1e-5F);
              for (std::int64_t j = 0; j < columns; ++j) {
                r[j] = (x[j] - mean) * inverse * inputs[1][j] + inputs[2][j];
              }
            }
          }};
}

// Results over the inputs would change them from call to call, so they lie elsewhere.
Chain momentum(std::int64_t n) {
  Maker m(n, 1);
  const auto p = m.input(Extent::full), g = m.input(Extent::full), v = m.input(Extent::full);
  const auto rate = m.input(Extent::scalar);
  const auto kept = m.step(Add{}, {m.step(Multiply{}, {v, number(0.9)}), g});
  m.result(kept);
  m.result(m.step(Subtract{}, {p, m.step(Multiply{}, {rate, kept})}));
  return {m.loop(), [=](auto results, auto inputs) {
            const float *p = inputs[0], *g = inputs[1];
            const float* v = inputs[2];
            const float rate = inputs[3][0];
            float *kept = results[0], *to = results[1];
            MULGRAD_INDEPENDENT
            for (std::int64_t i = 0; i < n; ++i) {
              const float k = v[i] * 0.9F + g[i];
              kept[i] = k;
              to[i] = p[i] - rate * k;
            }
          }};
}

Chain adamw(std::int64_t n) {
  Maker m(n, 1);
  constexpr Extent kScalar = Extent::scalar;
  const auto p = m.input(Extent::full), g = m.input(Extent::full);
  const auto m1 = m.input(Extent::full), m2 = m.input(Extent::full);
  const auto rate = m.input(kScalar), c1 = m.input(kScalar), c2 = m.input(kScalar);
  const auto shrink =
      m.step(Subtract{}, {number(1), m.step(Multiply{}, {rate, number(0.01)}, kScalar)}, kScalar);
  const auto decayed = m.step(Multiply{}, {p, shrink});
  const auto first = m.step(
      Add{}, {m.step(Multiply{}, {m1, number(0.9)}), m.step(Multiply{}, {g, number(1 - 0.9)})});
  const auto second =
      m.step(Add{}, {m.step(Multiply{}, {m2, number(0.999)}),
                     m.step(Multiply{}, {m.step(Multiply{}, {g, g}), number(1 - 0.999)})});
  const auto direction = m.step(Divide{}, {first, c1});
  const auto root = m.step(Sqrt{}, {m.step(Divide{}, {second, c2})});
  const auto scale = m.step(Add{}, {root, number(1e-8)});
  const auto step = m.step(Divide{}, {m.step(Multiply{}, {direction, rate}), scale});
  m.result(m.step(Subtract{}, {decayed, step}));
  m.result(first);
  m.result(second);
  return {m.loop(),
          [=](auto results, auto inputs) {
            const float *p = inputs[0], *g = inputs[1];
            const float *m1 = inputs[2], *m2 = inputs[3];
            const float rate = inputs[4][0], c1 = inputs[5][0], c2 = inputs[6][0];
            float *to = results[0], *first = results[1];
            float* second = results[2];
            MULGRAD_INDEPENDENT
            for (std::int64_t i = 0; i < n; ++i) {
              const float a = m1[i] * 0.9F + g[i] * 0.1F;
              const float b = m2[i] * 0.999F + g[i] * g[i] * 0.001F;
              first[i] = a;
              second[i] = b;
              to[i] = p[i] * (1 - rate * 0.01F) - rate * (a / c1) / (std::sqrt(b / c2) + 1e-8F);
            }
          },
          true};
}

int registered = [] {
  const auto add = [](const std::string& name, const Chain& chain) {
    benchmark::RegisterBenchmark(
        (name + " " + std::to_string(chain.loop.rows) + "x" + std::to_string(chain.loop.columns))
            .c_str(),
        [chain](benchmark::State& state) { compare(state, chain); })
        ->Iterations(1);
  };
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{4, 8}, {1, 128}, {32, 128}, {128, 128}, {500, 500}}) {
    add("bias_relu", bias_relu(rows, columns));
    add("relu_derivative", relu_derivative(rows, columns));
  }
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{4, 2}, {1, 10}, {32, 10}, {500, 10}, {768, 65}}) {
    add("softmax_cross_entropy", softmax_cross_entropy(rows, columns));
  }
  add("layer_norm", layer_norm(768, 128));
  add("gelu", gelu(768 * 512));
  for (const std::int64_t n : {16, 100352, 1 << 20}) {
    add("momentum", momentum(n));
    add("adamw", adamw(n));
  }
  return 0;
}();

}  // namespace
}  // namespace mulgrad::cpu
