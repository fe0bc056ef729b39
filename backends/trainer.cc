#include "backends/trainer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "autodiff/random.h"
#include "backends/cpu/session.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

// Rows that predict() and loss() run at a time: enough to keep products busy, few enough that
// temporaries stay small.
constexpr std::int64_t kRowsPerRun = 256;

Type batched(const Tensor& tensor) {
  if (tensor.rank() == 0) {
    throw Error(Category::shape_mismatch,
                "found a tensor of rank 0, expected a first axis of rows");
  }
  Shape shape{Dim::symbol("B")};
  for (const std::int64_t size : tensor.sizes().subspan(1)) shape.push_back(size);
  return {tensor.dtype(), shape};
}

// Calls run(rows) for the rows of `data` in parts of kRowsPerRun; once for no rows.
template <class F>
void in_parts(std::int64_t rows, F run) {
  std::int64_t first = 0;
  do {
    const std::int64_t last = std::min(rows, first + kRowsPerRun);
    std::vector<std::int64_t> indices;
    for (std::int64_t row = first; row < last; ++row) indices.push_back(row);
    run(indices);
    first = last;
  } while (first < rows);
}

}  // namespace

struct Trainer::Impl {
  Sequential model;
  Loss loss;
  std::shared_ptr<const Optimizer> optimizer;
  TrainerOptions options;
  std::vector<Parameter> parameters;
  std::vector<Tensor> initial;

  // Made when the first data tells the types of inputs and targets.
  struct Compiled {
    TrainingSession session;
    CpuFunction loss;      // parameters, x, y -> the loss
    std::int64_t classes;  // 0 where the targets are no labels
  };
  std::optional<Compiled> compiled;
  std::optional<CpuFunction> prediction;  // parameters, x -> the model's output

  // Declares the parameters on a tape.
  std::vector<Var> declare(Tape& tape) const {
    std::vector<Var> values;
    for (const Parameter& parameter : parameters) {
      values.push_back(tape.input(parameter.name, parameter.type));
    }
    return values;
  }

  TrainingSpec spec(const Type& x, const Type& y) const {
    TrainingSpec spec;
    for (const Parameter& parameter : parameters) {
      spec.inputs.push_back({parameter.name, parameter.type});
      spec.parameters.push_back(parameter.name);
    }
    spec.inputs.push_back({"x", x});
    spec.inputs.push_back({"y", y});
    // Copies, so that the spec outlives a trainer that is moved.
    spec.loss = [model = model, loss = loss, names = spec.parameters](Tape&, const NamedVars& in) {
      std::vector<Var> values;
      for (const std::string& name : names) values.push_back(in[name]);
      return loss(model.forward(in["x"], values), in["y"]);
    };
    return with_optimizer(std::move(spec), optimizer);
  }

  Compiled& compile(const Dataset& data) {
    if (compiled) return *compiled;
    const Type x = batched(data.inputs);
    const Type y = batched(data.targets);
    Tape evaluation("evaluate");
    const std::vector<Var> values = declare(evaluation);
    const Var outputs = model.forward(evaluation.input("x", x), values);
    const bool labels = !is_float(y.dtype) && outputs.rank() == 2;
    const std::int64_t classes = labels ? outputs.shape()[1].size() : 0;
    const Var loss_value = loss(outputs, evaluation.input("y", y));
    if (!(loss_value.shape() == Shape{}) && !(loss_value.shape() == Shape{1, 1})) {
      throw Error(Category::invalid_loss_output, "found a loss of shape " +
                                                     loss_value.shape().to_string() +
                                                     ", expected a scalar: rank 0 or [1, 1]");
    }
    evaluation.output("loss", loss_value);
    compiled.emplace(Compiled{
        TrainingSession(spec(x, y), options.target, Passes::for_target(options.target), initial),
        function(evaluation), classes});
    return *compiled;
  }

  CpuFunction& predictor(const Tensor& inputs) {
    if (prediction) return *prediction;
    Tape tape("predict");
    const std::vector<Var> values = declare(tape);
    tape.output("prediction", model.forward(tape.input("x", batched(inputs)), values));
    return prediction.emplace(function(tape));
  }

  CpuFunction function(Tape& tape) const {
    return {tape.finish(), options.target, default_pipeline(options.target, Slot::forward)};
  }

  void check_labels(const Dataset& data) const {
    if (compiled->classes == 0) return;
    for (std::int64_t row = 0; row < data.targets.elements(); ++row) {
      const std::int64_t label = data.targets.element(row).as_int();
      if (label >= 0 && label < compiled->classes) continue;
      throw Error(Category::invalid_data, "row " + std::to_string(row) + ": found the label " +
                                              std::to_string(label) + ", expected one in [0, " +
                                              std::to_string(compiled->classes) + ")");
    }
  }

  std::vector<Tensor> values() const {
    if (!compiled) return initial;
    const auto values = compiled->session.parameters();
    return {values.begin(), values.end()};
  }

  std::vector<Tensor> arguments(std::initializer_list<Tensor> data) const {
    std::vector<Tensor> result = values();
    result.insert(result.end(), data.begin(), data.end());
    return result;
  }
};

Trainer::Trainer(Sequential model, Loss loss, std::shared_ptr<const Optimizer> optimizer,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(Impl{std::move(model),
                                        std::move(loss),
                                        std::move(optimizer),
                                        std::move(options),
                                        {},
                                        {},
                                        {},
                                        {}})) {
  if (impl_->options.batch_size < 1) {
    throw Error(
        Category::invalid_argument,
        "found batch size " + std::to_string(impl_->options.batch_size) + ", expected one >= 1");
  }
  if (!impl_->loss || impl_->optimizer == nullptr) {
    throw Error(Category::invalid_training_declaration,
                std::string("found no ") + (impl_->loss ? "optimizer" : "loss") + ", expected one");
  }
  impl_->parameters = impl_->model.parameters();
  impl_->initial = initialize(impl_->parameters, impl_->options.seed);
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const TrainingStep& Trainer::prepared(const Dataset& data) {
  return impl_->compile(data).session.prepared({{"B", impl_->options.batch_size}});
}

std::vector<EpochReport> Trainer::fit(const Dataset& train, const FitOptions& options) {
  if (train.rows() == 0) {
    throw Error(Category::invalid_argument, "found 0 training rows, expected at least one");
  }
  if (options.epochs < 0) {
    throw Error(Category::invalid_argument,
                "found " + std::to_string(options.epochs) + " epochs, expected 0 or more");
  }
  std::vector<EpochReport> reports;
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const std::vector<std::int64_t> order =
        shuffled(train.rows(), impl_->options.seed, static_cast<std::uint64_t>(epoch));
    EpochReport report;
    report.epoch = epoch;
    double sum = 0;
    for (std::span<const std::int64_t> rest(order); !rest.empty();) {
      const std::size_t rows =
          std::min(rest.size(), static_cast<std::size_t>(impl_->options.batch_size));
      sum += step(train.take(rest.first(rows))) * static_cast<double>(rows);
      rest = rest.subspan(rows);
    }
    report.loss = sum / static_cast<double>(train.rows());
    if (options.validation) {
      report.validation_loss = loss(*options.validation);
      if (impl_->compiled->classes > 0) {
        report.validation_accuracy =
            accuracy(predict(options.validation->inputs), options.validation->targets);
      }
    }
    if (options.on_epoch) options.on_epoch(report);
    reports.push_back(report);
  }
  return reports;
}

double Trainer::step(const Dataset& batch) {
  if (batch.rows() == 0) {
    throw Error(Category::invalid_argument, "found a batch of 0 rows, expected at least one");
  }
  Impl::Compiled& compiled = impl_->compile(batch);
  impl_->check_labels(batch);
  const Tensor data[] = {batch.inputs, batch.targets};
  return compiled.session.step(data);
}

Tensor Trainer::predict(const Tensor& inputs) {
  CpuFunction& predictor = impl_->predictor(inputs);
  std::vector<Tensor> parts;
  std::int64_t rows = 0;
  in_parts(inputs.sizes()[0], [&](std::span<const std::int64_t> indices) {
    parts.push_back(predictor.run(impl_->arguments({take_rows(inputs, indices)}))[0]);
    rows += std::ssize(indices);
  });
  std::vector<std::int64_t> sizes(parts[0].sizes().begin(), parts[0].sizes().end());
  sizes[0] = rows;
  Tensor result(parts[0].dtype(), std::move(sizes));
  auto out = result.bytes().begin();
  for (const Tensor& part : parts) out = std::ranges::copy(part.bytes(), out).out;
  return result;
}

double Trainer::loss(const Dataset& data) {
  Impl::Compiled& compiled = impl_->compile(data);
  impl_->check_labels(data);
  double sum = 0;
  in_parts(data.rows(), [&](std::span<const std::int64_t> indices) {
    const Dataset part = data.take(indices);
    const Tensor value = compiled.loss.run(impl_->arguments({part.inputs, part.targets}))[0];
    sum += value.element(0).as_double() * static_cast<double>(indices.size());
  });
  return sum / static_cast<double>(data.rows());
}

std::span<const Parameter> Trainer::parameters() const { return impl_->parameters; }

std::vector<Tensor> Trainer::values() const { return impl_->values(); }

std::int64_t Trainer::fallbacks() const {
  if (!impl_->compiled) return 0;
  return static_cast<std::int64_t>(
      impl_->compiled->session.plan({{"B", impl_->options.batch_size}}).fallbacks());
}

}  // namespace mulgrad
