// Batches: how many there are, what the last one averages over, and what steps cost in memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>

#include "autodiff/losses.h"
#include "autodiff/random.h"
#include "backends/cpu/session.h"
#include "backends/trainer.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using testing::near;

// One epoch over rows of ones with the prediction itself as loss: each step moves the bias by the
// rate, whatever its number of rows, as the loss is a mean over the rows that are there. Padding
// would show: a last batch of 96 of 128 would move it by 0.75 only.
double steps_of_an_epoch(std::int64_t rows, std::int64_t batch_size) {
  const Dataset data = make_dataset(Tensor(DType::f64, {rows, 1}), Tensor(DType::f64, {rows, 1}));
  Trainer trainer(Sequential{Linear(1, 1, DType::f64)},
                  [](Var prediction, Var target) { return mean(prediction - target); },
                  SGD({.rate = 1}), {.batch_size = batch_size});
  const double before = trainer.values()[1].element(0).as_double();
  trainer.fit(data, {.epochs = 1});
  return before - trainer.values()[1].element(0).as_double();
}

TEST(Batches, LastPartialBatch_IsAStepOfItsOwn) {
  EXPECT_NEAR(steps_of_an_epoch(60000, 128), 469, 1e-9);  // 468 of 128, one of 96
  EXPECT_NEAR(steps_of_an_epoch(1763, 32), 56, 1e-9);     // 55 of 32, one of 3
  EXPECT_NEAR(steps_of_an_epoch(64, 32), 2, 1e-9);
  EXPECT_NEAR(steps_of_an_epoch(3, 32), 1, 1e-9);
}

// How the last partial batch is taken elsewhere: filled up with rows that a mask takes out.
TrainingSpec masked(std::shared_ptr<const Optimizer> optimizer) {
  TrainingSpec spec;
  spec.inputs = {{"w", {DType::f64, {3, 2}}},
                 {"b", {DType::f64, {1, 2}}},
                 {"x", {DType::f64, {32, 3}}},
                 {"y", {DType::f64, {32, 2}}},
                 {"mask", {DType::f64, {32, 1}}}};
  spec.parameters = {"w", "b"};
  spec.loss = [](Tape&, const NamedVars& in) {
    const Var error = matmul(in["x"], in["w"]) + in["b"] - in["y"];
    const Var total = sum(error * error * in["mask"]);
    return total / (sum(in["mask"]) * 2);
  };
  return with_optimizer(std::move(spec), std::move(optimizer));
}

TEST(Batches, PaddedAndMaskedRun_HasTheSameWeights) {
  constexpr std::int64_t kRows = 1763;
  RandomStream random(5, 0);
  Dataset data = make_dataset(Tensor(DType::f64, {kRows, 3}), Tensor(DType::f64, {kRows, 2}));
  for (Tensor* each : {&data.inputs, &data.targets}) {
    for (double& value : each->data<double>()) value = random.normal();
  }
  const auto optimizer = std::make_shared<const AdamW>(AdamW::Settings{.rate = 0.01});
  Trainer trainer(Sequential{Linear(3, 2, DType::f64)}, mse, optimizer,
                  {.target = Target::matmul_only(), .batch_size = 32, .seed = 9});
  TrainingSession padded(masked(optimizer), Target::cpu(), {}, trainer.values());
  const std::vector<Tensor> start = trainer.values();
  trainer.fit(data, {.epochs = 1});

  const std::vector<std::int64_t> order = shuffled(kRows, 9, 1);
  for (std::size_t first = 0; first < order.size(); first += 32) {
    const std::size_t rows = std::min<std::size_t>(32, order.size() - first);
    std::vector<std::int64_t> indices(order.begin() + static_cast<std::ptrdiff_t>(first),
                                      order.begin() + static_cast<std::ptrdiff_t>(first + rows));
    indices.resize(32, 0);  // any row will do
    Tensor mask(DType::f64, {32, 1});
    for (std::size_t i = 0; i < rows; ++i) mask.data<double>()[i] = 1;
    const Dataset batch = data.take(indices);
    padded.step(std::vector{batch.inputs, batch.targets, mask});
  }
  EXPECT_EQ(padded.count(), 56);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(near(trainer.values()[i], padded.parameters()[i], {0, 1e-12}));
    EXPECT_FALSE(near(trainer.values()[i], start[i], {0, 0.1}));  // trained, that is
  }
}

TEST(Batches, AfterTheFirstOfEachSize_NothingIsCompiledAndMemoryIsFlat) {
  TrainingSpec spec;
  spec.inputs = {{"w", {DType::f32, {2, 1}}}, {"x", {DType::f32, {Dim::symbol("B"), 2}}}};
  spec.parameters = {"w"};
  spec.loss = [](Tape&, const NamedVars& in) {
    const Var y = matmul(in["x"], in["w"]);
    return mean(y * y);
  };
  const auto optimizer = std::make_shared<const SGD>(SGD::Settings{.rate = 0.01, .momentum = 0.5});
  TrainingSession session(with_optimizer(std::move(spec), optimizer), Target::cpu(), {},
                          {Tensor::of<float>({2, 1}, {1, -1})});
  const std::vector<Tensor> full = {Tensor::of<float>({2, 2}, {1, 2, 3, 4})};
  const std::vector<Tensor> last = {Tensor::of<float>({1, 2}, {1, 2})};
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) session.step(i % 8 == 7 ? last : full);
  };
  steps(64);
  const Plan* plans[] = {&session.plan({{"B", 2}}), &session.plan({{"B", 1}})};
  const std::size_t used = mallinfo2().uordblks;
  steps(20000);
  EXPECT_LE(mallinfo2().uordblks, used + 40000);  // two bytes a step at most: no step keeps any
  EXPECT_EQ(&session.plan({{"B", 2}}), plans[0]);
  EXPECT_EQ(&session.plan({{"B", 1}}), plans[1]);
}

}  // namespace
}  // namespace mulgrad
