#include "examples/custom_backend/tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "autodiff/optimizers.h"
#include "autodiff/random.h"
#include "core/csv.h"
#include "examples/data/digits.h"

namespace mulgrad::examples {
namespace {

const Dim kBatch = Dim::symbol("B");

// ---- digits

constexpr std::int64_t kPixels = 64;
constexpr std::int64_t kRows = 32;  // of a batch

Sequential digits_model() { return Sequential(Linear(kPixels, 64), ReLU(), Linear(64, 10)); }

TrainingSpec digits_spec() {
  TrainingSpec spec;
  spec.name = "digits";
  spec.inputs = {{"x", {DType::f32, {kBatch, kPixels}}}, {"labels", {DType::i64, {kBatch}}}};
  const Sequential model = digits_model();
  for (const Parameter& parameter : model.parameters()) {
    spec.inputs.push_back({parameter.name, parameter.type});
    spec.parameters.push_back(parameter.name);
  }
  spec.loss = [model](Tape&, const NamedVars& in) {
    std::vector<Var> parameters;
    for (const Parameter& parameter : model.parameters()) parameters.push_back(in[parameter.name]);
    return softmax_cross_entropy(model.forward(in["x"], parameters), in["labels"]);
  };
  spec.clip_norm = 0.5;
  return with_optimizer(std::move(spec),
                        std::make_shared<SGD>(SGD::Settings{.rate = 0.05, .momentum = 0.9}));
}

std::size_t input_index(const CTrainingStep& step, const std::string& name) {
  const std::int64_t index = step.program().find_input(name);
  INTERNAL_CHECK(index >= 0);
  return static_cast<std::size_t>(index);
}

// The largest difference over the largest value; infinity where either side has a NaN.
double difference(const std::vector<double>& got, const std::vector<double>& want) {
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double gap = std::abs(got[i] - want[i]);
    if (std::isnan(gap)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, gap);
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

// ---- exclusive or

constexpr int kXorSteps = 1000;
constexpr float kXorRows[4][3] = {{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}};  // x0, x1, y

Var xor_model(Var x, Var w1, Var b1, Var w2, Var b2) {
  return logistic(matmul(tanh(matmul(x, w1) + b1), w2) + b2);
}

// x and the parameters in, "p" out.
Program xor_predict_program() {
  Tape tape("xor_predict");
  const Var x = tape.input("x", {DType::f32, {4, 2}});
  const Var w1 = tape.input("w1", {DType::f32, {2, 8}});
  const Var b1 = tape.input("b1", {DType::f32, {1, 8}});
  const Var w2 = tape.input("w2", {DType::f32, {8, 1}});
  const Var b2 = tape.input("b2", {DType::f32, {1, 1}});
  tape.output("p", xor_model(x, w1, b1, w2, b2));
  return tape.finish();
}

TrainingSpec xor_spec() {
  TrainingSpec spec;
  spec.name = "xor";
  spec.inputs = {{"x", {DType::f32, {kBatch, 2}}}, {"y", {DType::f32, {kBatch, 1}}},
                 {"w1", {DType::f32, {2, 8}}},     {"b1", {DType::f32, {1, 8}}},
                 {"w2", {DType::f32, {8, 1}}},     {"b2", {DType::f32, {1, 1}}}};
  spec.parameters = {"w1", "b1", "w2", "b2"};
  spec.loss = [](Tape&, const NamedVars& in) {
    return mse(xor_model(in["x"], in["w1"], in["b1"], in["w2"], in["b2"]), in["y"]);
  };
  return with_optimizer(std::move(spec), std::make_shared<AdamW>(AdamW::Settings{.rate = 0.02}));
}

}  // namespace

DigitsTask::DigitsTask(std::uint64_t seed)
    : seed_(seed),
      table_(read_csv(digits_csv(), DType::f32, "digits.csv").values),
      rows_([&] {
        std::vector<std::int64_t> rows = shuffled(table_.sizes()[0], seed, 0);
        rows.erase(rows.begin(), rows.begin() + std::ssize(rows) / 5);  // held out
        return rows;
      }()),
      full_("digits_step_" + std::to_string(kRows), digits_spec(), {{"B", kRows}}),
      partial_("digits_step_" + std::to_string(std::ssize(rows_) % kRows), digits_spec(),
               {{"B", std::ssize(rows_) % kRows}}) {}

void DigitsTask::fill(std::span<const std::int64_t> rows, Tensor& x, Tensor& labels) const {
  const std::span<const float> table = table_.data<float>();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = table.subspan(static_cast<std::size_t>(rows[i] * (kPixels + 1)));
    for (std::size_t j = 0; j < kPixels; ++j) x.data<float>()[i * kPixels + j] = row[j] / 16;
    labels.data<std::int64_t>()[i] = static_cast<std::int64_t>(row[kPixels]);
  }
}

DigitsTask::Epoch DigitsTask::train(const OneStep& one_step) const {
  // The inputs of both steps are the same but for the batch.
  std::vector<Tensor> values = zeros(full_.program());
  const std::vector<Parameter> parameters = digits_model().parameters();
  std::vector<Tensor> initial = initialize(parameters, seed_);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    values[input_index(full_, parameters[i].name)] = std::move(initial[i]);
  }
  Tensor& x = values[input_index(full_, "x")];
  Tensor& labels = values[input_index(full_, "labels")];
  Tensor& count = values[input_index(full_, "count")];

  Epoch epoch;
  for (std::size_t first = 0; first < rows_.size(); first += kRows) {
    const std::size_t rows = std::min<std::size_t>(kRows, rows_.size() - first);
    if (rows < kRows) {
      x = Tensor(DType::f32, {static_cast<std::int64_t>(rows), kPixels});
      labels = Tensor(DType::i64, {static_cast<std::int64_t>(rows)});
    }
    fill(std::span(rows_).subspan(first, rows), x, labels);
    count.data<std::int64_t>()[0] += 1;
    epoch.losses.push_back(one_step(rows < kRows ? partial_ : full_, values));
  }
  epoch.values = std::move(values);
  return epoch;
}

double DigitsTask::compare(const CLibrary& library) const {
  const Epoch got = train([&](const CTrainingStep& step, std::span<Tensor> values) {
    return step.run(library, values);
  });
  const Epoch want = train(
      [](const CTrainingStep& step, std::span<Tensor> values) { return step.interpret(values); });

  double worst = difference(got.losses, want.losses);
  std::printf("  %-26s %.1e\n", "loss of every step", worst);
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const std::string& name = full_.program().inputs()[i].name;
    if (full_.program().find_output("new." + name) < 0) continue;
    const double gap = difference(got.values[i].to_doubles(), want.values[i].to_doubles());
    std::printf("  %-26s %.1e\n", name.c_str(), gap);
    worst = std::max(worst, gap);
  }
  std::printf("  loss: first batch %.3f, last %.3f, %zu batches of which the last has %zu rows\n",
              got.losses.front(), got.losses.back(), got.losses.size(), rows_.size() % kRows);
  return worst;
}

XorTask::XorTask(std::uint64_t seed) : seed_(seed), step_("xor_step_4", xor_spec(), {{"B", 4}}) {}

std::string XorTask::c_text() const {
  return step_.text() + c_program("xor_predict", xor_predict_program());
}

double XorTask::learn(const CLibrary& library) const {
  std::vector<Tensor> values = zeros(step_.program());
  Tensor& x = values[input_index(step_, "x")];
  Tensor& y = values[input_index(step_, "y")];
  for (std::size_t i = 0; i < 4; ++i) {
    x.data<float>()[2 * i] = kXorRows[i][0];
    x.data<float>()[2 * i + 1] = kXorRows[i][1];
    y.data<float>()[i] = kXorRows[i][2];
  }
  std::vector<void*> inference = {x.bytes().data()};
  std::uint64_t stream = 0;
  for (const std::string& name : step_.step().parameters) {
    Tensor& value = values[input_index(step_, name)];
    value = Initializer::uniform(1).draw(value.type(), seed_, stream++);
    inference.push_back(value.bytes().data());
  }
  double loss = 0;
  for (int i = 0; i < kXorSteps; ++i) {
    values[input_index(step_, "count")].data<std::int64_t>()[0] += 1;
    loss = step_.run(library, values);
  }

  Tensor p(DType::f32, {4, 1});
  inference.push_back(p.bytes().data());
  library.call("xor_predict_forward_run", inference);
  bool right = true;
  for (std::size_t i = 0; i < 4; ++i) {
    const float predicted = p.data<float>()[i];
    std::printf("  %g xor %g = %g, predicted %.3f\n", kXorRows[i][0], kXorRows[i][1],
                kXorRows[i][2], predicted);
    right = right && std::abs(predicted - kXorRows[i][2]) < 0.5F;
  }
  return right ? loss : std::numeric_limits<double>::infinity();
}

}  // namespace mulgrad::examples
