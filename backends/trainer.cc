#include "backends/trainer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "autodiff/random.h"
#include "backends/row_parts.h"
#include "backends/trainer_impl.h"
#include "core/text.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

Type batched(const Tensor& tensor) {
  if (tensor.rank() == 0) {
    throw Error(Category::shape_mismatch,
                "found a tensor of rank 0, expected a first axis of rows");
  }
  Shape shape{Dim::symbol("B")};
  for (const std::int64_t size : tensor.sizes().subspan(1)) shape.push_back(size);
  return {tensor.dtype(), shape};
}

}  // namespace

Trainer::Impl::Impl(Sequential m, Loss l, std::shared_ptr<const Optimizer> o, TrainerOptions t)
    : model(std::move(m)), loss(std::move(l)), optimizer(std::move(o)), options(std::move(t)) {
  pool = cpu::make_pool(options.threads);
  if (options.batch_size < 1) {
    throw Error(Category::invalid_argument,
                "found batch size " + std::to_string(options.batch_size) + ", expected one >= 1");
  }
  if (!loss || optimizer == nullptr) {
    throw Error(Category::invalid_training_declaration,
                std::string("found no ") + (loss ? "optimizer" : "loss") + ", expected one");
  }
  parameters = model.parameters();
  ids = model.ids();
  start.parameters = initialize(parameters, options.seed);
}

// Declares the parameters on a tape.
std::vector<Var> Trainer::Impl::declare(Tape& tape) const {
  std::vector<Var> values;
  for (const Parameter& parameter : parameters) {
    values.push_back(tape.input(parameter.name, parameter.type));
  }
  return values;
}

TrainingSpec Trainer::Impl::spec(const Type& x, const Type& y) const {
  TrainingSpec spec;
  for (const Parameter& parameter : parameters) {
    spec.inputs.push_back({parameter.name, parameter.type});
    spec.parameters.push_back(parameter.name);
  }
  spec.inputs.push_back({"x", x});
  spec.inputs.push_back({"y", y});
  spec.seed = options.seed;
  // A first trace tells which random inputs the layers ask for.
  Tape tape;
  LayerContext context{Mode::train};
  context.uniform = [&](const Shape& shape) {
    const std::string name = "random" + std::to_string(spec.random_inputs.size());
    spec.inputs.push_back({name, {DType::f32, shape}});
    spec.random_inputs.push_back(name);
    return tape.input(name, {DType::f32, shape});
  };
  const Var traced_x = tape.input("x", x);
  model.forward(traced_x, declare(tape), context);
  // Copies, so that the spec outlives a trainer that is moved.
  spec.loss = [model = model, loss = loss, names = spec.parameters, random = spec.random_inputs](
                  Tape&, const NamedVars& in) {
    std::vector<Var> values;
    for (const std::string& name : names) values.push_back(in[name]);
    LayerContext context{Mode::train};
    context.uniform = [&, next = std::size_t{0}](const Shape&) mutable {
      return in[random[next++]];
    };
    return loss(model.forward(in["x"], values, context), in["y"]);
  };
  spec.clip_norm = options.clip_norm;
  return with_optimizer(std::move(spec), optimizer);
}

Trainer::Impl::Compiled& Trainer::Impl::compile(const Dataset& data) {
  if (compiled) return *compiled;
  const Type x = batched(data.inputs);
  const Type y = batched(data.targets);
  Tape evaluation("evaluate");
  const std::vector<Var> values = declare(evaluation);
  const Var outputs = model.forward(evaluation.input("x", x), values);
  const bool labels = !is_float(y.dtype) && outputs.rank() == y.rank() + 1;
  const std::int64_t classes = labels ? outputs.shape()[y.rank()].size() : 0;
  const Var loss_value = loss(outputs, evaluation.input("y", y));
  if (!(loss_value.shape() == Shape{}) && !(loss_value.shape() == Shape{1, 1})) {
    throw Error(Category::invalid_loss_output, "found a loss of shape " +
                                                   loss_value.shape().to_string() +
                                                   ", expected a scalar: rank 0 or [1, 1]");
  }
  evaluation.output("loss", loss_value);
  compiled.emplace(
      Compiled{TrainingSession(spec(x, y), options.target, Passes::for_target(options.target),
                               start.parameters, CpuOptions{.pool = pool}),
               function(evaluation.finish()), classes});
  if (!start.state.empty()) compiled->session.restore(start.count, start.parameters, start.state);
  prediction_program(data.inputs);
  return *compiled;
}

const Program& Trainer::Impl::prediction_program(const Tensor& x) {
  if (!prediction) {
    Tape tape("predict");
    const std::vector<Var> values = declare(tape);
    tape.output("prediction", model.forward(tape.input("x", batched(x)), values));
    prediction = tape.finish();
    no_rows = take_rows(x, std::span<const std::int64_t>());
  }
  return *prediction;
}

CpuFunction Trainer::Impl::function(Program program) const {
  return {std::move(program), options.target, default_pipeline(options.target, Slot::forward),
          CpuOptions{.pool = pool}};
}

void Trainer::Impl::check_data(const Dataset& data) const {
  expect_ids(data.inputs, ids);
  if (compiled->classes > 0) expect_below(data.targets, compiled->classes, "label");
}

std::span<const Tensor> Trainer::Impl::values() const {
  return compiled ? compiled->session.parameters() : start.parameters;
}

std::vector<std::vector<Tensor>> Trainer::Impl::state() const {
  if (compiled) return {compiled->session.state().begin(), compiled->session.state().end()};
  if (!start.state.empty()) return start.state;
  std::vector<std::vector<Tensor>> zeros;
  for (const Tensor& value : start.parameters) {
    const Tensor zero(value.dtype(), {value.sizes().begin(), value.sizes().end()});
    zeros.emplace_back(optimizer->state().size(), zero);
  }
  return zeros;
}

std::int64_t Trainer::Impl::count() const {
  return compiled ? compiled->session.count() : start.count;
}

void Trainer::Impl::restore(Trained from) {
  if (compiled) {
    compiled->session.restore(from.count, from.parameters, from.state);
  } else {
    start = std::move(from);
  }
}

std::vector<PartMean> Trainer::Impl::losses(const Dataset& data) {
  constexpr std::int64_t kParts = 32;
  Compiled& self = compile(data);
  check_data(data);
  const std::int64_t rows = data.rows();
  const std::int64_t per_part = std::clamp<std::int64_t>(rows / kParts, 1, kRowsPerRun);
  std::vector<Tensor> arguments(values().begin(), values().end());
  arguments.resize(arguments.size() + 2);
  std::vector<PartMean> parts;
  in_parts(rows, per_part, [&](std::span<const std::int64_t> indices) {
    Dataset part = data.take(indices);
    arguments[arguments.size() - 2] = std::move(part.inputs);
    arguments.back() = std::move(part.targets);
    parts.push_back({self.loss.run(arguments)[0].element(0).as_double(), std::ssize(indices)});
  });
  return parts;
}

Trainer::Trainer(Sequential model, Loss loss, std::shared_ptr<const Optimizer> optimizer,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(loss), std::move(optimizer),
                                   std::move(options))) {}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const TrainingStep& Trainer::prepared(const Dataset& data) {
  return impl_->compile(data).session.prepared({{"B", impl_->options.batch_size}});
}

void Trainer::stop() { impl_->stop_asked = true; }

double Trainer::step(const Dataset& batch) {
  if (batch.rows() == 0) {
    throw Error(Category::invalid_argument, "found a batch of 0 rows, expected at least one");
  }
  Impl::Compiled& compiled = impl_->compile(batch);
  impl_->check_data(batch);
  const Tensor* const data[] = {&batch.inputs, &batch.targets};
  return compiled.session.step(data);
}

Tensor Trainer::predict(const Tensor& inputs) {
  Impl& self = *impl_;
  expect_ids(inputs, self.ids);
  if (!self.predictor) {
    self.predictor = self.function(self.prediction_program(inputs));
  }
  const auto values = self.values();
  return predict_in_parts(*self.predictor, {values.begin(), values.end()}, inputs);
}

double Trainer::loss(const Dataset& data) { return mean_of(impl_->losses(data)); }

std::span<const Parameter> Trainer::parameters() const { return impl_->parameters; }

std::vector<Tensor> Trainer::values() const {
  const auto values = impl_->values();
  return {values.begin(), values.end()};
}

std::int64_t Trainer::fallbacks() const {
  if (!impl_->compiled) return 0;
  return static_cast<std::int64_t>(
      impl_->compiled->session.plan({{"B", impl_->options.batch_size}}).fallbacks());
}

}  // namespace mulgrad
