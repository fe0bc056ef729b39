// The products of training steps, as product_kernel makes them, beside one call of BLAS each. The
// counters: nanoseconds a call of both, and the ratio.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/product.h"
#include "bench/turns.h"

namespace mulgrad::cpu {
namespace {

// result[m,n] = lhs rhs; which of both is stored transposed.
enum class Form : std::uint8_t { plain, lhs_transposed, rhs_transposed };

struct Product {
  std::int64_t m, n, k;
  Form form;
  std::int64_t batch = 1;
};

std::string name(const Product& p) {
  std::string result = "product ";
  if (p.batch > 1) result += std::to_string(p.batch) + "x ";
  result += std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.form == Form::lhs_transposed) result += " lhs^T";
  if (p.form == Form::rhs_transposed) result += " rhs^T";
  return result;
}

ProductSpec spec_of(const Product& p) {
  ProductSpec spec;
  spec.m = p.m;
  spec.n = p.n;
  spec.k = p.k;
  spec.lhs = {{}, p.k, 1};
  if (p.form == Form::lhs_transposed) spec.lhs = {{}, 1, p.m};
  spec.rhs = {{}, p.n, 1};
  if (p.form == Form::rhs_transposed) spec.rhs = {{}, 1, p.k};
  spec.result = {{}, p.n, 1};
  if (p.batch > 1) {
    spec.batch = {p.batch};
    spec.lhs.batch_strides = {p.m * p.k};
    spec.rhs.batch_strides = {p.k * p.n};
    spec.result.batch_strides = {p.m * p.n};
  }
  return spec;
}

void compare(benchmark::State& state, const Product& p) {
  const Kernel kernel = product_kernel(spec_of(p), std::make_shared<ThreadPool>(1));
  const auto filled = [&p](std::int64_t size) {
    return std::vector<float>(static_cast<std::size_t>(p.batch * size), 0.5F);
  };
  const std::vector<float> lhs = filled(p.m * p.k);
  const std::vector<float> rhs = filled(p.k * p.n);
  std::vector<float> ours = filled(p.m * p.n);
  std::vector<float> blas = filled(p.m * p.n);
  const std::byte* const operands[] = {reinterpret_cast<const std::byte*>(lhs.data()),
                                       reinterpret_cast<const std::byte*>(rhs.data())};
  std::byte* const results[] = {reinterpret_cast<std::byte*>(ours.data())};
  const auto m = static_cast<blasint>(p.m);
  const auto n = static_cast<blasint>(p.n);
  const auto k = static_cast<blasint>(p.k);
  const bool flip_lhs = p.form == Form::lhs_transposed;
  const bool flip_rhs = p.form == Form::rhs_transposed;
  bench::Contender contenders[] = {
      {[&](int times) {
        for (int i = 0; i < times; ++i) {
          kernel(results, operands);
          benchmark::ClobberMemory();
        }
        return 0.0;
      }},
      {[&](int times) {
        for (int i = 0; i < times; ++i) {
          for (std::int64_t b = 0; b < p.batch; ++b) {
            cblas_sgemm(CblasRowMajor, flip_lhs ? CblasTrans : CblasNoTrans,
                        flip_rhs ? CblasTrans : CblasNoTrans, m, n, k, 1,
                        lhs.data() + b * p.m * p.k, flip_lhs ? m : k, rhs.data() + b * p.k * p.n,
                        flip_rhs ? k : n, 0, blas.data() + b * p.m * p.n, n);
          }
          benchmark::ClobberMemory();
        }
        return 0.0;
      }}};
  for (auto _ : state) bench::take_turns(contenders, 0.1, bench::thread_clock);
  if (ours != blas) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (std::abs(ours[i] - blas[i]) > 1e-3F * std::abs(blas[i])) {
        state.SkipWithError("the product differs from that of BLAS");
        return;
      }
    }
  }
  state.counters["ours_ns"] = contenders[0].best * 1e3;
  state.counters["hand_ns"] = contenders[1].best * 1e3;
  state.counters["ratio"] = contenders[0].best / contenders[1].best;
}

[[maybe_unused]] const bool registered = [] {
  // Of a linear layer [rows, in] -> [rows, out]: forward, the weight's gradient, the input's.
  const auto linear = [](std::int64_t rows, std::int64_t in, std::int64_t out) {
    return std::vector<Product>{{rows, out, in, Form::plain},
                                {in, out, rows, Form::lhs_transposed},
                                {rows, in, out, Form::rhs_transposed}};
  };
  std::vector<Product> products;
  for (const auto& [rows, in, out] : std::vector<std::array<std::int64_t, 3>>{{4, 2, 8},
                                                                              {1, 784, 128},
                                                                              {32, 784, 128},
                                                                              {128, 784, 128},
                                                                              {500, 784, 500},
                                                                              {128, 512, 512},
                                                                              {128, 512, 10},
                                                                              {768, 128, 512}}) {
    for (const Product& product : linear(rows, in, out)) products.push_back(product);
  }
  products.push_back({64, 64, 32, Form::rhs_transposed, 48});  // scores of heads
  products.push_back({64, 32, 64, Form::plain, 48});           // and what they mix
  for (const Product& product : products) {
    benchmark::RegisterBenchmark(name(product).c_str(), [product](benchmark::State& state) {
      compare(state, product);
    })->Iterations(1);
  }
  return true;
}();

}  // namespace
}  // namespace mulgrad::cpu
