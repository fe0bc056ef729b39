#include "backends/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autodiff/losses.h"
#include "autodiff/random.h"
#include "core/csv.h"
#include "examples/data/digits.h"
#include "lowering/target.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

Dataset digits(DType dtype) {
  return classification_from_csv(read_csv(examples::digits_csv(), dtype, "digits.csv"), "label", 10,
                                 1.0 / 16);
}

// The first rows only: enough steps to matter, few enough for sanitizers.
Dataset some_digits(DType dtype, std::int64_t rows) {
  std::vector<std::int64_t> indices;
  for (std::int64_t row = 0; row < rows; ++row) indices.push_back(row);
  return digits(dtype).take(indices);
}

Sequential network(DType dtype) {
  return Sequential{Linear(64, 64, dtype), ReLU(), Linear(64, 10, dtype)};
}

template <class O>
Trainer trained(DType dtype, const Target& target, const O& optimizer, const Dataset& data,
                std::int64_t epochs, std::vector<EpochReport>* reports = nullptr) {
  Trainer trainer(network(dtype), softmax_cross_entropy, optimizer, {.target = target, .seed = 3});
  auto result = trainer.fit(data, {.epochs = epochs});
  if (reports != nullptr) *reports = std::move(result);
  return trainer;
}

// Per tensor, the largest difference over the largest value; the worst tensor's.
double distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].to_doubles();
    const std::vector<double> y = b[i].to_doubles();
    double difference = 0;
    double largest = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      difference = std::max(difference, std::fabs(x[k] - y[k]));
      largest = std::max(largest, std::fabs(x[k]));
    }
    EXPECT_GT(largest, 0);
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

TEST(Trainer, SgdWithMomentumOnTheMatmulOnlyProgram_EqualsTheDirectProgramInF32) {
  const Dataset data = digits(DType::f32);
  const SGD optimizer({.rate = 0.05, .momentum = 0.9});
  std::vector<EpochReport> reports;
  const Trainer direct = trained(DType::f32, Target::cpu(), optimizer, data, 3);
  const Trainer matmul_only =
      trained(DType::f32, Target::matmul_only(), optimizer, data, 3, &reports);
  EXPECT_LE(distance(direct.values(), matmul_only.values()), 1e-5);
  EXPECT_LE(reports.back().loss, 0.5 * reports.front().loss);
  EXPECT_EQ(matmul_only.fallbacks(), 0);
  // The comparison is about trained weights: they have moved.
  EXPECT_GT(distance(Trainer(network(DType::f32), softmax_cross_entropy, optimizer,
                             {.target = Target::cpu(), .seed = 3})
                         .values(),
                     direct.values()),
            0.1);
}

TEST(Trainer, AdamWOnTheMatmulOnlyProgram_EqualsTheDirectProgramInF64) {
  const Dataset data = digits(DType::f64);
  const AdamW optimizer({.rate = 3e-3});
  std::vector<EpochReport> reports;
  const Trainer direct = trained(DType::f64, Target::cpu(), optimizer, data, 3);
  const Trainer matmul_only =
      trained(DType::f64, Target::matmul_only(), optimizer, data, 3, &reports);
  EXPECT_LE(distance(direct.values(), matmul_only.values()), 1e-11);
  EXPECT_LE(reports.back().loss, 0.5 * reports.front().loss);
}

TEST(Trainer, TwoRunsWithOneSeed_AreBitEqual) {
  const Dataset data = some_digits(DType::f32, 300);
  const AdamW optimizer({.rate = 3e-3});
  std::vector<EpochReport> first_reports;
  std::vector<EpochReport> second_reports;
  const Trainer first =
      trained(DType::f32, Target::matmul_only(), optimizer, data, 2, &first_reports);
  const Trainer second =
      trained(DType::f32, Target::matmul_only(), optimizer, data, 2, &second_reports);
  EXPECT_EQ(first.values(), second.values());
  EXPECT_EQ(first_reports.back().loss, second_reports.back().loss);
}

TEST(Trainer, CompiledStep_HoldsOnlyOpsOfTheTarget) {
  Trainer trainer(network(DType::f32), softmax_cross_entropy, AdamW({}),
                  {.target = Target::matmul_only()});
  const TrainingStep& step = trainer.prepared(some_digits(DType::f32, 2));
  EXPECT_TRUE(step.coverage.unsupported.empty()) << step.coverage.print();
  const Property only = only_target_ops(Target::matmul_only());
  ASSERT_GE(step.artifacts.size(), 4u);  // forward, derivative, updates, step scalars
  for (const CoverageArtifact& entry : step.artifacts) {
    EXPECT_EQ(only.violation(entry.artifact.program), std::nullopt) << entry.artifact.name;
    // Means, sums and broadcasts were there before the passes: the target refuses their source.
    if (entry.artifact.name == "forward" || entry.artifact.name == "derivative") {
      EXPECT_NE(only.violation(entry.artifact.source), std::nullopt) << entry.artifact.name;
    }
  }
  EXPECT_EQ(only.violation(step_program(step)), std::nullopt);
}

TEST(Trainer, LastPartialBatch_IsAveragedOverItsRealRows) {
  const Dataset data = some_digits(DType::f64, 40);  // a batch of 32 and one of 8
  const SGD optimizer({.rate = 0.1});
  Trainer fitted(network(DType::f64), softmax_cross_entropy, optimizer, {.seed = 5});
  const std::vector<EpochReport> reports = fitted.fit(data, {.epochs = 1});

  // The same rows in an open loop, with a session of its own batches: each plain SGD step moves by
  // the gradient of the mean over the rows that are there.
  Trainer open(network(DType::f64), softmax_cross_entropy, optimizer, {.seed = 5});
  const std::vector<std::int64_t> order = shuffled(40, 5, 1);
  const std::span<const std::int64_t> rows(order);
  const double first = open.step(data.take(rows.first(32)));
  EXPECT_DOUBLE_EQ(open.loss(data.take(rows.last(8))), [&] {
    double sum = 0;
    for (const std::int64_t row : rows.last(8)) sum += open.loss(data.take(std::span(&row, 1)));
    return sum / 8;
  }());
  const double last = open.step(data.take(rows.last(8)));
  EXPECT_EQ(open.values(), fitted.values());
  EXPECT_DOUBLE_EQ(reports[0].loss, (32 * first + 8 * last) / 40);
}

TEST(Trainer, Predict_TakesAnyNumberOfRows) {
  const Dataset data = some_digits(DType::f32, 300);
  Trainer trainer = trained(DType::f32, Target::matmul_only(), AdamW({}), data, 1);
  const Tensor all = trainer.predict(data.inputs);
  ASSERT_THAT(all.sizes(), ::testing::ElementsAre(300, 10));
  for (const std::int64_t row : {0, 17, 255, 256, 299}) {
    const Tensor one = trainer.predict(take_rows(data.inputs, std::span(&row, 1)));
    ASSERT_THAT(one.sizes(), ::testing::ElementsAre(1, 10));
    for (std::int64_t k = 0; k < 10; ++k) {
      EXPECT_NEAR(one.element(k).as_double(), all.element(row * 10 + k).as_double(), 1e-5);
    }
  }
  EXPECT_THAT(trainer.predict(take_rows(data.inputs, {})).sizes(), ::testing::ElementsAre(0, 10));
}

TEST(Trainer, Validation_ReportsLossAndAccuracyOfTheHeldOutRows) {
  const auto [train, held_out] = digits(DType::f32).split(0.2, 0);
  EXPECT_EQ(train.rows(), 1438);
  EXPECT_EQ(held_out.rows(), 359);
  Trainer trainer(network(DType::f32), softmax_cross_entropy, AdamW({.rate = 3e-3}), {});
  const auto reports = trainer.fit(train, {.epochs = 2, .validation = held_out});
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].validation_loss, trainer.loss(held_out));
  EXPECT_EQ(reports[1].validation_accuracy,
            accuracy(trainer.predict(held_out.inputs), held_out.targets));
  EXPECT_GT(*reports[1].validation_accuracy, 0.8);
}

TEST(Trainer, Regression_LearnsALine) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 64; ++i) {
    x.push_back(i / 32.0 - 1);
    y.push_back(3 * x.back() - 0.5);
  }
  const Dataset data = make_dataset(Tensor::of<double>({64, 1}, x), Tensor::of<double>({64, 1}, y));
  Trainer trainer(Sequential{Linear(1, 1, DType::f64)}, mse, SGD({.rate = 0.2}),
                  {.batch_size = 16});
  trainer.fit(data, {.epochs = 100});
  EXPECT_NEAR(trainer.values()[0].element(0).as_double(), 3, 1e-6);
  EXPECT_NEAR(trainer.values()[1].element(0).as_double(), -0.5, 1e-6);
}

TEST(Trainer, NonFiniteLoss_StopsNamesStepAndNodeAndKeepsTheParameters) {
  Dataset data = some_digits(DType::f32, 64);
  Trainer trainer(network(DType::f32), softmax_cross_entropy, AdamW({}),
                  {.target = Target::matmul_only()});
  std::vector<std::int64_t> first(32);
  for (std::size_t i = 0; i < 32; ++i) first[i] = static_cast<std::int64_t>(i);
  trainer.step(data.take(first));
  const std::vector<Tensor> before = trainer.values();
  // An infinite pixel: its products with weights of both signs and the softmax make the NaN.
  data.inputs.data<float>()[70] = std::numeric_limits<float>::infinity();
  const Error error = error_of([&] { trainer.step(data.take(first)); });
  EXPECT_EQ(error.category(), Category::non_finite_loss);
  EXPECT_THAT(error.what(), HasSubstr("step 2"));
  EXPECT_THAT(error.what(), HasSubstr("forward:%"));
  EXPECT_EQ(trainer.values(), before);
}

TEST(Trainer, BatchSizeZeroAndNoRows_AreInvalidArguments) {
  EXPECT_EQ(error_of([] {
              Trainer(network(DType::f32), softmax_cross_entropy, AdamW({}), {.batch_size = 0});
            }).category(),
            Category::invalid_argument);
  Trainer trainer(network(DType::f32), softmax_cross_entropy, AdamW({}), {});
  const Dataset none = some_digits(DType::f32, 0);
  EXPECT_EQ(error_of([&] { trainer.step(none); }).category(), Category::invalid_argument);
  EXPECT_EQ(error_of([&] { trainer.fit(none, {}); }).category(), Category::invalid_argument);
}

TEST(Trainer, UnfitDeclarationsAndData_AreCategorisedErrors) {
  const Sequential model = network(DType::f32);
  EXPECT_EQ(error_of([&] { Trainer(model, Loss(), SGD({.rate = 1})); }).category(),
            Category::invalid_training_declaration);
  EXPECT_EQ(error_of([&] {
              Trainer(model, softmax_cross_entropy, std::shared_ptr<const Optimizer>(), {});
            }).category(),
            Category::invalid_training_declaration);
  EXPECT_EQ(error_of([&] {
              Trainer(Sequential{Linear(std::int64_t{1} << 40, 1 << 20)}, mse, SGD({.rate = 1}));
            }).category(),
            Category::invalid_argument);
  Trainer trainer(model, softmax_cross_entropy, SGD({.rate = 1}));
  EXPECT_EQ(error_of([&] { trainer.fit(some_digits(DType::f32, 2), {.epochs = -1}); }).category(),
            Category::invalid_argument);
  const Dataset scalars{Tensor::scalar(1.0F), Tensor::scalar(std::int32_t{1})};
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { trainer.fit(scalars, {}); }, [&] { trainer.step(scalars); },
           [&] { trainer.loss(scalars); }, [&] { trainer.prepared(scalars); },
           [&] { trainer.predict(scalars.inputs); }}) {
    EXPECT_EQ(error_of(call).category(), Category::shape_mismatch);
  }
  // After all of that it still trains.
  EXPECT_EQ(trainer.fit(some_digits(DType::f32, 2), {.epochs = 1}).size(), 1u);
}

TEST(Trainer, LabelOutOfRange_NamesRowAndLabel) {
  Dataset data = some_digits(DType::f32, 8);
  Trainer trainer(network(DType::f32), softmax_cross_entropy, AdamW({}), {});
  const std::vector<Tensor> before = trainer.values();
  for (const std::int32_t label : {10, -1}) {
    data.targets.data<std::int32_t>()[5] = label;
    const Error error = error_of([&] { trainer.step(data); });
    EXPECT_EQ(error.category(), Category::invalid_data);
    EXPECT_THAT(error.what(), HasSubstr("row 5: found the label " + std::to_string(label)));
  }
  EXPECT_EQ(trainer.values(), before);
}

TEST(Trainer, SequencesOfIds_AreLearnedPlaceByPlace) {
  // The next id follows from the one before: 0 1 2 0 1 2 ...
  const Dataset data = make_dataset(Tensor::of<std::int32_t>({2, 4}, {0, 1, 2, 0, 1, 2, 0, 1}),
                                    Tensor::of<std::int32_t>({2, 4}, {1, 2, 0, 1, 2, 0, 1, 2}));
  Trainer trainer(Sequential{Embedding(3, 8), Linear(8, 3)}, softmax_cross_entropy,
                  AdamW({.rate = 0.1}), {.batch_size = 2});
  const std::vector<EpochReport> reports = trainer.fit(data, {.epochs = 30, .validation = data});
  EXPECT_LT(reports.back().loss, reports.front().loss / 2);
  EXPECT_EQ(reports.back().validation_accuracy, 1.0);

  for (const bool id : {true, false}) {
    Dataset wrong = data;
    (id ? wrong.inputs : wrong.targets).data<std::int32_t>()[6] = 3;
    const std::string message = std::string("row 1, position 2: found the ") +
                                (id ? "id" : "label") + " 3, expected one in [0, 3)";
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { trainer.step(wrong); }, [&] { trainer.loss(wrong); },
             [&] { trainer.fit(wrong, {.epochs = 31}); }}) {
      EXPECT_THAT(error_of(call).what(), HasSubstr(message));
    }
  }
  Tensor ids = data.inputs;
  ids.data<std::int32_t>()[0] = -1;
  EXPECT_EQ(error_of([&] { trainer.predict(ids); }).category(), Category::invalid_data);
}

// Sequences that count up from anywhere; the next token is the label.
Dataset counting() {
  Dataset data{Tensor(DType::i32, {20, 4}), Tensor(DType::i32, {20, 4})};
  for (std::int32_t i = 0; i < 80; ++i) {
    const auto place = static_cast<std::size_t>(i);
    data.inputs.data<std::int32_t>()[place] = (i / 4 + i % 4) % 5;
    data.targets.data<std::int32_t>()[place] = (i / 4 + i % 4 + 1) % 5;
  }
  return make_dataset(std::move(data.inputs), std::move(data.targets));
}

Trainer sequence_trainer(const Target& target) {
  constexpr DType f64 = DType::f64;
  Sequential model{Embedding(5, 8, f64), PositionEmbedding(4, 8, f64),
                   transformer_block(8, 2, AttentionMask::causal, 0.1, f64),
                   LayerNorm(8, 1e-5, f64), Linear(8, 5, f64)};
  return Trainer(std::move(model), softmax_cross_entropy, SGD({.rate = 0.3, .momentum = 0.9}),
                 {.target = target, .batch_size = 8, .seed = 4});
}

// With dropout, a partial batch in every epoch, and validation.
TEST(Trainer, SequencesOnEveryTarget_LearnTheSame) {
  const Dataset data = counting();
  Trainer direct = sequence_trainer(Target::cpu());
  const auto reports = direct.fit(data, {.epochs = 8, .validation = data});
  EXPECT_LT(*reports.back().validation_loss, 0.5 * *reports.front().validation_loss);
  EXPECT_GT(*reports.back().validation_accuracy, 0.9);
  EXPECT_EQ(direct.fallbacks(), 0);
  EXPECT_EQ(direct.predict(data.inputs).type(), (Type{DType::f64, {20, 4, 5}}));
  EXPECT_EQ(direct.predict(data.inputs), direct.predict(data.inputs));  // no dropout there

  Trainer again = sequence_trainer(Target::cpu());
  again.fit(data, {.epochs = 8});
  EXPECT_EQ(again.values(), direct.values());
  for (const Target& target : built_in_targets()) {
    Trainer trainer = sequence_trainer(target);
    trainer.fit(data, {.epochs = 1});
    Trainer same = sequence_trainer(Target::cpu());
    same.fit(data, {.epochs = 1});
    EXPECT_LT(distance(trainer.values(), same.values()), 1e-9) << target.name();
  }
}

TEST(Trainer, LossThatIsNoScalar_IsInvalidLossOutput) {
  Trainer trainer(network(DType::f32), [](Var scores, Var) { return scores; }, SGD({.rate = 0.1}),
                  {});
  const Error error = error_of([&] { trainer.step(some_digits(DType::f32, 8)); });
  EXPECT_EQ(error.category(), Category::invalid_loss_output);
  EXPECT_THAT(error.what(), HasSubstr("[[B], 10]"));
}

TEST(Trainer, InputsOfAnotherWidthOrDtype_AreNamed) {
  Trainer trainer(network(DType::f32), softmax_cross_entropy, AdamW({}), {});
  trainer.step(some_digits(DType::f32, 8));
  const Dataset wide = make_dataset(Tensor(DType::f32, {8, 65}), Tensor(DType::i32, {8}));
  const Error error = error_of([&] { trainer.step(wide); });
  EXPECT_EQ(error.category(), Category::symbolic_shape_mismatch);
  EXPECT_THAT(error.what(), HasSubstr("x: found"));
  EXPECT_THAT(error.what(), HasSubstr("8x65"));
  EXPECT_EQ(error_of([&] {
              trainer.predict(Tensor(DType::f64, {8, 64}));
            }).category(),
            Category::dtype_mismatch);
}

}  // namespace
}  // namespace mulgrad
