// What compiling a training step takes, from the model to a plan, by stage. bench/run.sh makes a
// table of it.
#include <benchmark/benchmark.h>

#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "backends/cpu/session.h"
#include "bench/models.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

// A model with the batch that its step is compiled for.
struct Model {
  Sequential layers;
  std::vector<DeclaredInput> data;  // x, y
};

Model mlp() {
  return {Sequential{Linear(784, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10)},
          {{"x", {DType::f32, {128, 784}}}, {"y", {DType::i32, {128}}}}};
}

Model transformer() {
  const bench::TransformerSizes sizes;
  const Type places{DType::i32, {sizes.batch, sizes.context}};
  return {bench::char_transformer(sizes), {{"x", places}, {"y", places}}};
}

TrainingSpec spec(const Model& model) {
  TrainingSpec result;
  for (const Parameter& parameter : model.layers.parameters()) {
    result.inputs.push_back({parameter.name, parameter.type});
    result.parameters.push_back(parameter.name);
  }
  result.inputs.insert(result.inputs.end(), model.data.begin(), model.data.end());
  result.loss = [layers = model.layers, names = result.parameters](Tape&, const NamedVars& in) {
    std::vector<Var> parameters;
    for (const std::string& name : names) parameters.push_back(in[name]);
    return softmax_cross_entropy(layers.forward(in["x"], parameters), in["y"]);
  };
  return with_optimizer(std::move(result), std::make_shared<const AdamW>(AdamW::Settings{}));
}

Program traced(const TrainingSpec& spec) {
  Tape tape;
  std::vector<NamedVar> inputs;
  for (const DeclaredInput& input : spec.inputs) {
    inputs.push_back({input.name, tape.input(input.name, input.type)});
  }
  const NamedVars named(std::move(inputs), Category::invalid_loss_signature);
  tape.output("loss", spec.loss(tape, named));
  return tape.finish();
}

void trace(benchmark::State& state, Model (*model)()) {
  const TrainingSpec step = spec(model());
  for (auto _ : state) benchmark::DoNotOptimize(traced(step));
}

void trace_and_derive(benchmark::State& state, Model (*model)()) {
  const TrainingSpec step = spec(model());
  for (auto _ : state) {
    benchmark::DoNotOptimize(derive(traced(step), {"loss"}, step.parameters));
  }
}

// Traced, derived, through all passes, with its coverage.
void prepare(benchmark::State& state, Model (*model)(), Target (*target)()) {
  const TrainingSpec step = spec(model());
  const Passes passes = Passes::for_target(target());
  for (auto _ : state) {
    benchmark::DoNotOptimize(prepare_training_step(step, {}, target(), {}, passes));
  }
}

// From the spec to the plan, as the first step of a session does it.
void spec_to_plan(benchmark::State& state, Model (*model)(), Target (*target)()) {
  const Model of = model();
  for (auto _ : state) {
    state.PauseTiming();  // drawing numbers is not compiling
    std::vector<Tensor> parameters = initialize(of.layers.parameters(), 0);
    state.ResumeTiming();
    TrainingSession session(spec(of), target(), Passes::for_target(target()),
                            std::move(parameters));
    benchmark::DoNotOptimize(&session.plan({}));
  }
}

const bool registered = [] {
  struct Named {
    std::string name;
    Model (*make)();
  };
  for (const auto& [name, model] :
       {Named{"784-512-512-10 B128", mlp}, Named{"char L4 d128 h4 T64 B12 V65", transformer}}) {
    benchmark::RegisterBenchmark(("trace/" + name).c_str(), trace, model);
    benchmark::RegisterBenchmark(("trace and derive/" + name).c_str(), trace_and_derive, model);
    for (const auto target : {Target::cpu, Target::matmul_only}) {
      const std::string suffix = "/" + name + "/" + target().name();
      benchmark::RegisterBenchmark(("prepare" + suffix).c_str(), prepare, model, target);
      benchmark::RegisterBenchmark(("spec to plan" + suffix).c_str(), spec_to_plan, model, target);
    }
  }
  return true;
}();

}  // namespace
}  // namespace mulgrad
