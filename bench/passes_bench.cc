// Time per node of the stages that a program goes through, from 1e3 to 1e6 nodes, and of the
// expansions on programs in which they find nothing. The nodes counted are those of the program
// that a stage starts from, also where it makes more of them: derive makes more than two from one.
// bench/run.sh makes a table of it.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "autodiff/derive.h"
#include "autodiff/tape.h"
#include "backends/cpu/session.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "lowering/legalize.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

// A chain of `nodes` nodes that every target takes: products, elementwise ops, a transpose and a
// division, which the matcher of the derivative has to look at.
Program chain(std::int64_t nodes) {
  Tape tape;
  const Type type{DType::f32, {4, 4}};
  const Var x = tape.input("x", type);
  const Var w = tape.input("w", type);
  Var y = x;
  for (std::int64_t i = 0; i < nodes; ++i) {
    switch (i % 8) {
      case 0:
        y = matmul(y, w);
        break;
      case 1:
        y = tanh(y);
        break;
      case 2:
        y = y + x;
        break;
      case 3:
        y = y * 0.5;
        break;
      case 4:
        y = transpose(y);
        break;
      case 5:
        y = y - w;
        break;
      case 6:
        y = y / 16.0;
        break;
      default:
        y = y * x;
    }
  }
  tape.output("y", y);
  return tape.finish();
}

void count_nodes(benchmark::State& state, std::int64_t nodes) {
  state.SetItemsProcessed(state.iterations() * nodes);
}

void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(chain(state.range(0)));
  count_nodes(state, state.range(0));
}

void print_text(benchmark::State& state) {
  const Program program = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(print(program));
  count_nodes(state, state.range(0));
}

void parse_text(benchmark::State& state) {
  const std::string text = print(chain(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(parse(text));
  count_nodes(state, state.range(0));
}

void derive_chain(benchmark::State& state) {
  const Program program = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(derive(program, {"y"}, {"x", "w"}));
  count_nodes(state, state.range(0));
}

void rewrite(benchmark::State& state) {
  const Program program = chain(state.range(0));
  const std::vector<Pass> passes = default_pipeline(Target::matmul_only(), Slot::forward);
  for (auto _ : state) benchmark::DoNotOptimize(run_passes(program, Slot::forward, passes));
  count_nodes(state, state.range(0));
}

void rewrite_derivative(benchmark::State& state) {
  const Program program = derive(chain(state.range(0)), {"y"}, {"x", "w"}).derivative;
  const std::vector<Pass> passes = default_pipeline(Target::matmul_only(), Slot::derivative);
  for (auto _ : state) benchmark::DoNotOptimize(run_passes(program, Slot::derivative, passes));
  count_nodes(state, std::ssize(program.nodes()));
}

void plan(benchmark::State& state) {
  const Program program = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(CpuProgram(program));
  count_nodes(state, state.range(0));
}

// One pass over a program in which it changes nothing.
void match(benchmark::State& state, const Pass& pass) {
  const Program program = chain(state.range(0));
  for (auto _ : state) {
    PassResult result = pass.run(program);
    if (result.changed) state.SkipWithError("the pass has found something");
    benchmark::DoNotOptimize(result);
  }
  count_nodes(state, state.range(0));
}

BENCHMARK(build)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(print_text)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(parse_text)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(derive_chain)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(rewrite)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(rewrite_derivative)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(plan)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK_CAPTURE(match, expand_mean, expand_mean())->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK_CAPTURE(match, expand_mean_derivative, expand_mean_derivative())
    ->RangeMultiplier(10)
    ->Range(1000, 1000000);
BENCHMARK_CAPTURE(match, legalize_to_matmul, legalize_to_matmul(Target::matmul_only()))
    ->RangeMultiplier(10)
    ->Range(1000, 1000000);

}  // namespace
}  // namespace mulgrad
