// Checkpoints: what is saved, resumed and refused, and what a kill leaves.
#include "backends/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "autodiff/random.h"
#include "backends/predictor.h"
#include "backends/trainer.h"
#include "core/file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::throws;

// Two noisy classes of points in the plane.
Dataset points(std::int64_t rows) {
  RandomStream random(11, 0);
  Tensor inputs(DType::f32, {rows, 2});
  Tensor labels(DType::i32, {rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto label = static_cast<std::int32_t>(random.below(2));
    labels.data<std::int32_t>()[static_cast<std::size_t>(row)] = label;
    for (std::int64_t k = 0; k < 2; ++k) {
      inputs.data<float>()[static_cast<std::size_t>(2 * row + k)] =
          static_cast<float>(random.normal() + 3.0 * label);
    }
  }
  return make_dataset(inputs, labels);
}

// With dropout, whose numbers a resumed run must go on with.
Sequential network() { return Sequential{Linear(2, 8), ReLU(), Linear(8, 2), Dropout(0.1)}; }

template <class O>
Trainer trainer_of(const O& optimizer, std::uint64_t seed = 3) {
  return Trainer(network(), softmax_cross_entropy, optimizer, {.batch_size = 8, .seed = seed});
}

// Forked, so that nothing but the file goes from the one who saves to the one who resumes.
void in_another_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Checkpoint, RunStoppedWithinAnEpochSavedAndResumedInANewProcess_IsBitEqual) {
  const TemporaryFolder folder;
  const Dataset data = points(100);  // 13 steps an epoch, the last of 4 rows
  const AdamW optimizer({.rate = 1e-2});
  const FitOptions options{.epochs = 6, .validation = points(20), .early_stop = EarlyStop{}};
  const int stops[] = {1, 13, 31, 39};  // within, at the end of an epoch
  for (const int steps : stops) {
    in_another_process([&] {
      Trainer first = trainer_of(optimizer);
      FitOptions stopping = options;
      stopping.on_step = [&](const StepReport& report) {
        if (report.step == steps) first.stop();
      };
      first.fit(data, stopping);
      first.save(folder.file(std::to_string(steps)));
    });
  }
  Trainer straight = trainer_of(optimizer);
  const std::vector<EpochReport> expected = straight.fit(data, options);
  EXPECT_LE(expected.back().loss, 0.5 * expected.front().loss);
  for (const int steps : stops) {
    const std::string path = folder.file(std::to_string(steps));
    EXPECT_EQ(read_checkpoint(path).count, steps);
    Trainer second = trainer_of(optimizer, 99);  // the seed is the checkpoint's
    second.resume(path);
    EXPECT_EQ(second.fit(data, options), expected) << steps;
    EXPECT_EQ(second.values(), straight.values()) << steps;
  }
}

TEST(Checkpoint, SavedInACallback_ResumesFromThere) {
  const TemporaryFolder folder;
  const Dataset data = points(64);
  const SGD optimizer({.rate = 0.05, .momentum = 0.9});
  Trainer straight = trainer_of(optimizer);
  const FitOptions options{.epochs = 4,
                           .on_step =
                               [&](const StepReport& report) {
                                 if (report.step == 13) straight.save(folder.file("step"));
                               },
                           .on_epoch =
                               [&](const EpochReport& report) {
                                 if (report.epoch == 2) straight.save(folder.file("epoch"));
                               }};
  const std::vector<EpochReport> expected = straight.fit(data, options);
  for (const char* name : {"step", "epoch"}) {
    Trainer resumed = trainer_of(optimizer, name[0] == 's' ? 3 : 4);
    resumed.step(data);  // a compiled trainer takes it up as well
    resumed.resume(folder.file(name));
    EXPECT_EQ(resumed.fit(data, {.epochs = 4}), expected) << name;
    EXPECT_EQ(resumed.values(), straight.values()) << name;
  }
}

TEST(Checkpoint, AfterAnEarlyStop_IsThatOfTheBestEpoch) {
  const TemporaryFolder folder;
  const Dataset data = points(100);
  const AdamW optimizer({.rate = Schedule::cosine(0.3, 200)});
  const auto file = [&](std::int64_t epoch) { return folder.file(std::to_string(epoch)); };
  Trainer trainer = trainer_of(optimizer);
  FitOptions options{
      .epochs = 30,
      .validation = points(30),
      .early_stop = EarlyStop{.patience = 3},
      .on_epoch = [&](const EpochReport& report) { trainer.save(file(report.epoch)); }};
  const std::vector<EpochReport> reports = trainer.fit(data, options);
  const std::int64_t best = std::ssize(reports) - 3;
  ASSERT_GE(best, 2);
  ASSERT_LT(reports.size(), 30u);
  trainer.save(folder.file("after"));
  EXPECT_EQ(read_file(folder.file("after")), read_file(file(best)));

  Trainer resumed = trainer_of(optimizer);
  resumed.resume(file(best));
  const FitOptions more{.epochs = best + 2};
  EXPECT_EQ(trainer.fit(data, more), resumed.fit(data, more));
  EXPECT_EQ(trainer.values(), resumed.values());
  trainer.save(folder.file("after"));
  resumed.save(folder.file("resumed"));
  EXPECT_EQ(read_file(folder.file("after")), read_file(folder.file("resumed")));

  // What is kept of the best epoch is in every checkpoint, for a stop after it was resumed.
  Trainer late = trainer_of(optimizer);
  late.resume(file(best + 2));
  options.on_epoch = {};
  EXPECT_EQ(late.fit(data, options), reports);
  late.save(folder.file("late"));
  EXPECT_EQ(read_file(folder.file("late")), read_file(file(best)));
  // An epoch in progress is none of the best one's.
  late.fit(data, {.epochs = 30, .on_step = [&](const auto&) { late.stop(); }});
  late.fit(data, {.epochs = 0, .early_stop = EarlyStop{}});
  late.save(folder.file("late"));
  EXPECT_EQ(read_file(folder.file("late")), read_file(file(best)));
}

TEST(Checkpoint, File_HoldsNamedTensorsAndMetadata) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.safetensors");
  Trainer trainer = trainer_of(AdamW({}));
  const Dataset data = points(20);
  trainer.fit(data, {.epochs = 2, .early_stop = EarlyStop{}});
  trainer.save(path);
  const Safetensors content = read_safetensors_file(path);
  EXPECT_EQ(*content.find("parameter/layer0.weight"), trainer.values()[0]);
  EXPECT_EQ(content.find("state/layer2.bias/v")->type(), (Type{DType::f32, {1, 2}}));
  EXPECT_EQ(*content.find("best/layer2.bias"), trainer.values()[3]);
  EXPECT_EQ(*content.find("best_state/layer2.bias/v"), *content.find("state/layer2.bias/v"));
  EXPECT_EQ(content.metadata.at("best_count"), content.metadata.at("count"));
  EXPECT_THAT(content.find("fit/reports")->sizes(), ElementsAre(2, 10));
  EXPECT_THAT(content.find("input")->sizes(), ElementsAre(0, 2));
  EXPECT_EQ(content.metadata.at("mulgrad.checkpoint"), "1");
  EXPECT_EQ(content.metadata.at("count"), "6");
  EXPECT_EQ(content.metadata.at("seed"), "3");
  EXPECT_EQ(content.metadata.at("state"), "m\nv\n");
  EXPECT_EQ(content.metadata.at("layers"),
            "layer0.Linear\nlayer1.ReLU\nlayer2.Linear\nlayer3.Dropout\n");
  EXPECT_THAT(content.metadata.at("program"), HasSubstr("stablehlo.dot_general"));
}

TEST(Checkpoint, SavedBeforeAnyData_IsAStartToo) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  Trainer first = trainer_of(AdamW({}));
  first.save(path);
  Trainer second = trainer_of(AdamW({}), 4);
  second.resume(path);
  EXPECT_EQ(second.values(), first.values());
  const Dataset data = points(24);
  EXPECT_EQ(first.step(data), second.step(data));
  EXPECT_THAT([&] { Predictor{path}; }, throws(Category::invalid_data, "no program"));
}

TEST(Checkpoint, OfAnotherModelOrOptimizer_IsAnErrorNamingWhatDiffers) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  Trainer trainer = trainer_of(AdamW({}));
  const Dataset data = points(16);
  trainer.step(data);
  trainer.save(path);
  struct Case {
    Sequential model;
    std::shared_ptr<const Optimizer> optimizer;
    Category category;
    std::string node;
    std::string message;
  };
  const auto adam = std::make_shared<const AdamW>(AdamW({}));
  const Case cases[] = {
      {Sequential{Linear(2, 8), ReLU(), Linear(8, 2), Linear(2, 2)}, adam, Category::invalid_data,
       "layer3.weight", "no such parameter, the model has one of type tensor<2x2xf32>"},
      {Sequential{Linear(2, 8)}, adam, Category::invalid_data, "layer2.", "the model has not"},
      {Sequential{Linear(2, 9), ReLU(), Linear(9, 2)}, adam, Category::shape_mismatch,
       "layer0.weight", "tensor<2x8xf32> in the checkpoint, expected the model's tensor<2x9xf32>"},
      {Sequential{Linear(2, 8, DType::f64), ReLU(), Linear(8, 2, DType::f64)}, adam,
       Category::dtype_mismatch, "layer0.weight", "expected the model's tensor<2x8xf64>"},
      {network(), std::make_shared<const SGD>(SGD({.rate = 1, .momentum = 0.5})),
       Category::invalid_data, "",
       R"(state "m", "v" in the checkpoint, expected the optimizer's "momentum")"},
      {network(), std::make_shared<const SGD>(SGD({.rate = 1})), Category::invalid_data, "",
       "expected the optimizer's none"},
      // Of the same parameters.
      {Sequential{Linear(2, 8), TanH(), Linear(8, 2), Dropout(0.1)}, adam, Category::invalid_data,
       "", R"(found the layer "layer1.ReLU", expected "layer1.TanH")"},
      {Sequential{Linear(2, 8), ReLU(), Linear(8, 2)}, adam, Category::invalid_data, "",
       R"(found the layer "layer3.Dropout", expected none)"},
      {Sequential{Linear(2, 8), ReLU(), Linear(8, 2), Dropout(0.1), ReLU()}, adam,
       Category::invalid_data, "", R"(found the layer none, expected "layer4.ReLU")"},
  };
  for (const Case& each : cases) {
    Trainer other(each.model, softmax_cross_entropy, each.optimizer, {.seed = 8});
    const std::vector<Tensor> before = other.values();
    const Error error = error_of([&] { other.resume(path); });
    EXPECT_EQ(error.category(), each.category) << each.message;
    EXPECT_THAT(error.node(), HasSubstr(each.node));
    EXPECT_THAT(error.message(), HasSubstr(each.message));
    EXPECT_EQ(error.location(), path);
    EXPECT_EQ(other.values(), before);
  }
}

// ReLU as another version of the library might write it: the same layer of other nodes.
class OtherReLU : public Activation {
 public:
  std::vector<std::string> description() const override { return ReLU().description(); }

 private:
  Var emit(Var x, std::span<const Var>, const LayerContext&) const override {
    return -minimum(-x, 0);
  }
};

TEST(Checkpoint, OfAVersionWhoseLayersEmitOtherNodes_IsResumed) {
  const TemporaryFolder folder;
  const Dataset data = points(64);
  Trainer straight = trainer_of(AdamW({}));
  straight.fit(data, {.epochs = 1});
  straight.save(folder.file("first"));
  const std::vector<EpochReport> expected = straight.fit(data, {.epochs = 3});

  Trainer other(Sequential{Linear(2, 8), OtherReLU(), Linear(8, 2), Dropout(0.1)},
                softmax_cross_entropy, AdamW({}), {.batch_size = 8});
  other.resume(folder.file("first"));
  const Tensor prediction = other.predict(data.inputs);
  other.save(folder.file("second"));
  Safetensors content = read_safetensors_file(folder.file("second"));
  EXPECT_THAT(content.metadata.at("program"), HasSubstr("stablehlo.minimum"));
  EXPECT_EQ(Predictor(folder.file("second")).predict(data.inputs), prediction);
  content.metadata.erase("layers");  // as versions before wrote it
  write_safetensors_file(folder.file("third"), content);

  for (const char* name : {"second", "third"}) {
    Trainer resumed = trainer_of(AdamW({}), 99);
    resumed.resume(folder.file(name));
    EXPECT_EQ(resumed.fit(data, {.epochs = 3}), expected) << name;
    EXPECT_EQ(resumed.values(), straight.values()) << name;
  }
}

TEST(Checkpoint, MalformedEntries_AreErrorsNamingThem) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  Trainer trainer = trainer_of(AdamW({}));
  trainer.fit(points(16), {.epochs = 2, .early_stop = EarlyStop{}});
  trainer.save(path);
  const Safetensors good = read_safetensors_file(path);
  ASSERT_NO_THROW(to_checkpoint(good));
  const auto refused = [&](const std::string& entry, const Safetensors& content) {
    const Error error = error_of([&] { to_checkpoint(content); });
    EXPECT_EQ(error.category(), Category::invalid_data) << entry;
    EXPECT_EQ(error.node(), entry);
  };
  for (const auto& [key, value] : good.metadata) {
    if (key == "layers") continue;  // older versions wrote none
    Safetensors content = good;
    content.metadata.erase(key);
    refused(key, content);
    if (key == "state" || key == "program") continue;
    content.metadata[key] = "-1x";
    refused(key, content);
  }
  for (std::size_t i = 0; i < good.tensors.size(); ++i) {
    const std::string& name = good.tensors[i].name;
    // Parameters are what there is: a model misses one, the file does not.
    if (name.starts_with("parameter/")) continue;
    Safetensors content = good;
    content.tensors.erase(content.tensors.begin() + static_cast<std::ptrdiff_t>(i));
    refused(name, content);
    content = good;
    content.tensors[i].tensor = Tensor(DType::u8, {});
    refused(name, content);
  }
  Safetensors content = good;
  content.metadata["epochs_done"] = "7";
  refused("fit/reports", content);
  content = good;
  content.metadata["best_epoch"] = "7";
  refused("best_epoch", content);
  EXPECT_THAT([&] { trainer.resume(folder.file("none")); }, throws(Category::io_error, "none"));
  EXPECT_THAT([&] { trainer.resume(MULGRAD_SOURCE_DIR "/tests/goldens/files/dtypes.safetensors"); },
              throws(Category::invalid_data, "no such entry"));
}

TEST(Checkpoint, EpochInProgress_GoesOnWithItsOwnRowsOnly) {
  const TemporaryFolder folder;
  Trainer trainer = trainer_of(AdamW({}));
  trainer.fit(points(40), {.epochs = 2, .on_step = [&](const auto&) { trainer.stop(); }});
  trainer.save(folder.file("x"));
  Trainer resumed = trainer_of(AdamW({}));
  resumed.resume(folder.file("x"));
  EXPECT_THAT([&] { resumed.fit(points(41), {.epochs = 2}); },
              throws(Category::invalid_argument, "found 41 training rows, expected the 40"));
  EXPECT_EQ(resumed.fit(points(40), {.epochs = 2}).size(), 2u);
}

TEST(Predictor, FromACheckpoint_PredictsAsTheTrainer) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const Dataset data = points(300);
  Trainer trainer = trainer_of(AdamW({}));
  trainer.fit(data, {.epochs = 1});
  trainer.save(path);
  Predictor predictor(path);
  EXPECT_EQ(predictor.predict(data.inputs), trainer.predict(data.inputs));
  EXPECT_THAT(predictor.predict(Tensor(DType::f32, {0, 2})).sizes(), ElementsAre(0, 2));
  EXPECT_EQ(error_of([&] { predictor.predict(Tensor(DType::f32, {})); }).category(),
            Category::shape_mismatch);
  EXPECT_EQ(error_of([&] {
              predictor.predict(Tensor(DType::f64, {1, 2}));
            }).category(),
            Category::dtype_mismatch);

  Trainer resumed = trainer_of(AdamW({}));
  resumed.resume(path);
  resumed.save(folder.file("again"));  // before it has seen data itself
  EXPECT_EQ(Predictor(folder.file("again")).predict(data.inputs), trainer.predict(data.inputs));

  Safetensors content = read_safetensors_file(path);
  content.metadata["program"] = "module {";
  write_safetensors_file(path, content);
  const Error error = error_of([&] { Predictor{path}; });
  EXPECT_EQ(error.category(), Category::invalid_data);
  EXPECT_THAT(error.location(), HasSubstr(path + ":program:1:"));
}

TEST(Predictor, OfAModelThatTakesIds_RefusesThoseOutsideOfIts) {
  const TemporaryFolder folder;
  Trainer trainer(Sequential{Embedding(5, 4), Linear(4, 3)}, softmax_cross_entropy, AdamW({}));
  const Tensor ids = Tensor::of<std::int32_t>({2, 3}, {0, 1, 2, 3, 4, 0});
  trainer.step(make_dataset(ids, Tensor(DType::i32, {2, 3})));
  trainer.save(folder.file("x"));
  Predictor predictor(folder.file("x"));
  EXPECT_EQ(predictor.predict(ids), trainer.predict(ids));
  EXPECT_THAT(
      [&] {
        predictor.predict(Tensor::of<std::int32_t>({1, 2}, {0, 5}));
      },
      throws(Category::invalid_data, "row 0, position 1: found the id 5"));
}

// A checkpoint after `count` steps whose every number is the count.
Checkpoint counting_checkpoint(std::int64_t count) {
  Checkpoint checkpoint;
  checkpoint.count = count;
  checkpoint.state_names = {"m"};
  const Literal value = Literal::from_int(DType::f32, count);
  for (const char* name : {"w", "b"}) {
    checkpoint.parameters.push_back({name, Tensor::filled(value, {64, 256})});
    checkpoint.state.push_back({Tensor::filled(value, {64, 256})});
  }
  return checkpoint;
}

// A child saves in a loop, counting up from what it finds, and is killed at any moment.
TEST(Checkpoint, KilledAt200Moments_ThePreviousOrTheNewOneIsWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  // The moments lie within what a few saves take, on whatever disk.
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 8; ++i) write_checkpoint(path, counting_checkpoint(0));
  const std::chrono::microseconds window = std::chrono::duration_cast<std::chrono::microseconds>(
                                               std::chrono::steady_clock::now() - start) *
                                           3 / 8;
  RandomStream random(6, 0);
  std::int64_t count = 0;
  int saved = 0;
  for (int kill = 0; kill < 200; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::int64_t next = count + 1;; ++next)
        write_checkpoint(path, counting_checkpoint(next));
    }
    std::this_thread::sleep_for(random.uniform_f64() * window);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Checkpoint found = read_checkpoint(path);
    ASSERT_GE(found.count, count);
    saved += found.count > count ? 1 : 0;
    count = found.count;
    const Checkpoint expected = counting_checkpoint(count);
    ASSERT_EQ(found.parameters, expected.parameters);
    ASSERT_EQ(found.state, expected.state);
  }
  EXPECT_GE(saved, 10);  // the kills came while it saved, not before
}

}  // namespace
}  // namespace mulgrad
