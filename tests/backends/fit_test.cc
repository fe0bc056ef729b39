// What fit() does beside its steps: stopping, early stop, reports and their intervals, the bar,
// clipping, the loss curve.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autodiff/random.h"
#include "backends/cpu/session.h"
#include "backends/loss_curve.h"
#include "backends/trainer.h"
#include "core/csv.h"
#include "core/file.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/temporary_folder.h"

namespace mulgrad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::near;
using ::testing::Not;
using testing::TemporaryFolder;
using testing::throws;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A line with noise: y = 2 x + noise.
Dataset line(std::int64_t rows, std::uint64_t seed, DType dtype = DType::f64) {
  RandomStream random(seed, 0);
  std::vector<double> x;
  std::vector<double> y;
  for (std::int64_t row = 0; row < rows; ++row) {
    x.push_back(random.normal());
    y.push_back(2 * x.back() + 0.1 * random.normal());
  }
  return make_dataset(Tensor::from_doubles(dtype, {rows, 1}, x),
                      Tensor::from_doubles(dtype, {rows, 1}, y));
}

Trainer line_trainer(double rate, std::optional<double> clip_norm = std::nullopt) {
  return Trainer(Sequential{Linear(1, 1, DType::f64)}, mse, SGD({.rate = rate}),
                 {.batch_size = 10, .seed = 2, .clip_norm = clip_norm});
}

TEST(Interval, OfAMean_IsTheNormalOneOfItsParts) {
  // Equal parts: the mean and 1.96 sample deviations over the root of their number.
  const PartMean equal[] = {{1, 10}, {2, 10}, {3, 10}, {6, 10}};
  EXPECT_DOUBLE_EQ(mean_of(equal), 3);
  const double half = 1.959963984540054 * std::sqrt(14.0 / 3 / 4);
  EXPECT_DOUBLE_EQ(mean_interval(equal).low, 3 - half);
  EXPECT_DOUBLE_EQ(mean_interval(equal).high, 3 + half);
  // Weights 3/4 and 1/4, deviations -1 and 3: 2 (9/16 + 9/16).
  const PartMean unequal[] = {{1, 30}, {5, 10}};
  EXPECT_DOUBLE_EQ(mean_of(unequal), 2);
  EXPECT_DOUBLE_EQ(mean_interval(unequal).high, 2 + 1.959963984540054 * 1.5);
  EXPECT_EQ(mean_interval(std::span(equal).first(1)), (Interval{-kInfinity, kInfinity}));
}

TEST(Interval, OfAShare_IsWilsons) {
  // By hand for 8 of 10: (0.8 + z2/20 +- z sqrt(0.016 + z2/400)) / (1 + z2/10), z2 = 3.8414588.
  EXPECT_NEAR(wilson_interval(8, 10).low, 0.4901624715, 1e-9);
  EXPECT_NEAR(wilson_interval(8, 10).high, 0.9433178485, 1e-9);
  // All of n: n / (n + z2).
  EXPECT_NEAR(wilson_interval(10, 10).low, 10 / 13.841458820694124, 1e-12);
  EXPECT_EQ(wilson_interval(10, 10).high, 1);
  EXPECT_EQ(wilson_interval(0, 10).low, 0);
  EXPECT_EQ(wilson_interval(0, 0), (Interval{0, 1}));
  EXPECT_THAT([] { wilson_interval(3, 2); }, throws(Category::invalid_argument, "3 successes"));
  EXPECT_THAT([] { wilson_interval(-1, 2); }, throws(Category::invalid_argument, "-1"));
}

TEST(Fit, Callbacks_SeeEveryStepAndEpochAndStopTheRun) {
  const Dataset data = line(25, 1);  // 10, 10, 5
  Trainer trainer = line_trainer(0.1);
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> epochs;
  FitOptions options{.epochs = 3,
                     .on_step =
                         [&](const StepReport& report) {
                           steps.push_back(report.step);
                           rows.push_back(report.rows_done);
                           EXPECT_EQ(report.epoch, (report.step + 2) / 3);
                         },
                     .on_epoch =
                         [&](const EpochReport& report) {
                           epochs.push_back(report.epoch);
                           if (report.epoch == 2) trainer.stop();
                         }};
  EXPECT_EQ(trainer.fit(data, options).size(), 2u);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(rows, ElementsAre(10, 20, 25, 10, 20, 25));
  EXPECT_THAT(epochs, ElementsAre(1, 2));
  // The stop is over; the run has one epoch left, and then none.
  EXPECT_EQ(trainer.fit(data, options).size(), 3u);
  EXPECT_EQ(trainer.fit(data, options).size(), 3u);
  EXPECT_EQ(steps.size(), 9u);
}

TEST(Fit, Reports_HoldLossAndAccuracyWithTheirIntervals) {
  const Csv csv = read_csv_file(MULGRAD_SOURCE_DIR "/examples/data/digits.csv", DType::f32);
  const auto [train, held_out] = classification_from_csv(csv, "label", 10, 1.0 / 16).split(0.2, 0);
  Trainer trainer(Sequential{Linear(64, 10)}, softmax_cross_entropy, AdamW({.rate = 1e-2}), {});
  std::vector<PartMean> losses;
  const EpochReport report = trainer.fit(
      train, {.epochs = 1, .validation = held_out, .on_step = [&](const StepReport& step) {
                const std::int64_t before = losses.size() * 32;
                losses.push_back({step.loss, step.rows_done - before});
              }})[0];
  EXPECT_EQ(report.loss, mean_of(losses));
  EXPECT_EQ(report.loss_interval, mean_interval(losses));
  EXPECT_EQ(*report.validation_loss, trainer.loss(held_out));
  EXPECT_LT(report.validation_loss_interval->low, *report.validation_loss);
  EXPECT_GT(report.validation_loss_interval->low, 0.5 * *report.validation_loss);
  const double share = *report.validation_accuracy;
  EXPECT_EQ(*report.validation_accuracy_interval, wilson_interval(std::llround(share * 359), 359));
  // Regression has no accuracy.
  EXPECT_EQ(line_trainer(0.1)
                .fit(line(20, 1), {.epochs = 1, .validation = line(5, 2)})[0]
                .validation_accuracy,
            std::nullopt);
}

TEST(Fit, EarlyStop_WaitsItsPatienceAndRestoresTheBest) {
  // With this rate each step overshoots and the loss grows: the first epoch is the best.
  const Dataset data = line(20, 1);
  std::vector<Tensor> first;
  const auto run = [&](EarlyStop early_stop) {
    Trainer trainer = line_trainer(1.5);
    const auto reports = trainer.fit(data, {.epochs = 50,
                                            .validation = line(20, 2),
                                            .early_stop = early_stop,
                                            .on_epoch = [&](const EpochReport& report) {
                                              if (report.epoch == 1) first = trainer.values();
                                            }});
    EXPECT_EQ(std::ssize(reports), 1 + early_stop.patience);
    return trainer.values();
  };
  EXPECT_EQ(run({.patience = 3}), first);
  EXPECT_NE(run({.patience = 2, .keep = Keep::last}), first);

  // Improvements below min_delta are none: the loss starts near 4.
  Trainer slow = line_trainer(1e-4);
  EXPECT_EQ(
      slow.fit(data, {.epochs = 50, .early_stop = EarlyStop{.patience = 4, .min_delta = 1}}).size(),
      5u);
  Trainer good = line_trainer(0.05);
  EXPECT_EQ(good.fit(data, {.epochs = 10, .early_stop = EarlyStop{.patience = 2}}).size(), 10u);
}

TEST(Fit, UnfitOptions_AreInvalidArguments) {
  const Dataset data = line(20, 1);
  Trainer trainer = line_trainer(0.1);
  const FitOptions cases[] = {
      {.epochs = -1},
      {.validation = data.take({})},
      {.early_stop = EarlyStop{.patience = 0}},
      {.early_stop = EarlyStop{.min_delta = -1}},
      {.early_stop = EarlyStop{.min_delta = std::nan("")}},
  };
  for (const FitOptions& options : cases) {
    EXPECT_THAT([&] { trainer.fit(data, options); }, throws(Category::invalid_argument, "found"));
  }
}

// What is written to standard error while `work` runs, where that is `descriptor`.
template <class F>
void with_standard_error(int descriptor, F work) {
  std::fflush(stderr);
  const int kept = ::dup(STDERR_FILENO);
  ASSERT_GE(::dup2(descriptor, STDERR_FILENO), 0);
  work();
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
}

TEST(Fit, ProgressBar_ShowsOnATerminalAlone) {
  const auto train = [](Progress progress) {
    line_trainer(0.1).fit(line(40, 1),
                          {.epochs = 2, .validation = line(10, 2), .progress = progress});
  };
  const TemporaryFolder folder;
  const int file = ::open(folder.file("err").c_str(), O_RDWR | O_CREAT, 0600);
  with_standard_error(file, [&] { train(Progress::bar); });
  ::close(file);
  EXPECT_EQ(read_file(folder.file("err")), "");

  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  const int slave = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(slave, 0);
  with_standard_error(slave, [&] {
    train(Progress::silent);
    std::fputs("silent until here", stderr);
    train(Progress::bar);
    std::fputs("the end", stderr);
  });
  std::string shown;
  while (shown.find("the end") == std::string::npos) {
    char part[4096];
    const ssize_t count = ::read(terminal, part, sizeof part);
    ASSERT_GT(count, 0);
    shown.append(part, static_cast<std::size_t>(count));
  }
  ::close(slave);
  ::close(terminal);
  EXPECT_TRUE(shown.starts_with("silent until here")) << shown;
  EXPECT_THAT(shown, AllOf(HasSubstr("epoch 1/2 [########......................] 10/40 rows"),
                           HasSubstr("epoch 2/2  loss "), HasSubstr("validation loss "),
                           Not(HasSubstr("nan"))));
}

TrainingSpec linear_loss(std::optional<double> clip_norm) {
  TrainingSpec spec;
  spec.inputs = {{"a", {DType::f32, {2}}}, {"b", {DType::f32, {1, 1}}}, {"x", {DType::f32, {2}}}};
  spec.parameters = {"a", "b"};
  spec.loss = [](Tape&, const NamedVars& in) {
    return sum(in["a"] * in["x"]) + sum(in["b"]) * 12;  // gradients x and 12
  };
  spec.clip_norm = clip_norm;
  return with_optimizer(std::move(spec), std::make_shared<const SGD>(SGD({.rate = 1})));
}

TEST(ClipNorm, GradientsOfAllParameters_AreScaledToTheirGlobalNorm) {
  const std::vector<Tensor> x = {Tensor::of<float>({2}, {3, 4})};  // norm of 3, 4, 12: 13
  struct Case {
    double clip_norm;
    float scale;
  };
  for (const auto& [clip_norm, scale] : {Case{6.5, 0.5F}, {13, 1}, {100, 1}, {1.3, 0.1F}}) {
    for (const Target& target : {Target::cpu(), Target::matmul_only()}) {
      TrainingSession session(linear_loss(clip_norm), target, Passes::for_target(target),
                              {Tensor(DType::f32, {2}), Tensor(DType::f32, {1, 1})});
      session.step(x);
      EXPECT_TRUE(near(session.parameters()[0], Tensor::of<float>({2}, {-3 * scale, -4 * scale}),
                       {1e-6, 0}));
      EXPECT_TRUE(
          near(session.parameters()[1], Tensor::of<float>({1, 1}, {-12 * scale}), {1e-6, 0}));
      if (scale == 1) {  // untouched, bit for bit
        EXPECT_EQ(session.parameters()[0], Tensor::of<float>({2}, {-3, -4}));
      }
    }
  }
}

TEST(ClipNorm, OnMatmulOnly_IsAProgramOfItsOwnWithoutAnythingUnsupported) {
  const TrainingStep step = prepare_training_step(linear_loss(1.0), {}, Target::matmul_only(), {},
                                                  Passes::for_target(Target::matmul_only()));
  ASSERT_NE(step.clip(), nullptr);
  EXPECT_EQ(step.clip()->name, "clip");
  EXPECT_EQ(step.step_scalars()->name, "step_scalars");
  EXPECT_TRUE(step.coverage.unsupported.empty()) << step.coverage.print();
  EXPECT_EQ(prepare_training_step(linear_loss({}), {}, Target::cpu(), {}, {}).clip(), nullptr);
  for (const double bad : {0.0, -1.0, kInfinity, std::nan("")}) {
    EXPECT_EQ(error_of([&] {
                prepare_training_step(linear_loss(bad), {}, Target::cpu(), {}, {});
              }).category(),
              Category::invalid_training_declaration);
  }
  TrainingSpec taken = linear_loss(1.0);
  taken.state = {"clip"};
  EXPECT_EQ(error_of([&] { prepare_training_step(taken, {}, Target::cpu(), {}, {}); }).category(),
            Category::invalid_update_signature);
}

TEST(ClipNorm, InTraining_EqualsTheDirectProgramAndBoundsEveryStep) {
  const Dataset data = line(50, 1);
  Trainer trainer = line_trainer(1, 0.25);
  std::vector<Tensor> before = trainer.values();
  trainer.fit(data, {.epochs = 2, .on_step = [&](const StepReport&) {
                       const std::vector<Tensor> now = trainer.values();
                       double moved = 0;
                       for (std::size_t i = 0; i < now.size(); ++i) {
                         const double d = now[i].to_doubles()[0] - before[i].to_doubles()[0];
                         moved += d * d;
                       }
                       EXPECT_LE(std::sqrt(moved), 0.25 * (1 + 1e-12));
                       before = now;
                     }});
  Trainer other(Sequential{Linear(1, 1, DType::f64)}, mse, SGD({.rate = 1}),
                {.target = Target::matmul_only(), .batch_size = 10, .seed = 2, .clip_norm = 0.25});
  other.fit(data, {.epochs = 2});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(near(other.values()[i], trainer.values()[i], {1e-11, 0}));
  }
}

TEST(Schedules, InTraining_MoveTheParametersByTheRateOfEachStep) {
  // The loss has gradient 1: each step moves the bias by its rate.
  const Dataset data = make_dataset(Tensor(DType::f64, {60, 1}), Tensor(DType::f64, {60, 1}));
  for (const Target& target : {Target::cpu(), Target::matmul_only()}) {
    Trainer trainer(Sequential{Linear(1, 1, DType::f64)},
                    [](Var prediction, Var truth) { return mean(prediction - truth); },
                    SGD({.rate = Schedule::cosine(0.5, 4).warmed_up(2)}),
                    {.target = target, .batch_size = 10});
    double before = trainer.values()[1].to_doubles()[0];
    std::vector<double> rates;
    trainer.fit(data, {.epochs = 1, .on_step = [&](const StepReport&) {
                         const double now = trainer.values()[1].to_doubles()[0];
                         rates.push_back(before - now);
                         before = now;
                       }});
    const double root = std::sqrt(0.5);
    const double expected[] = {0.25, 0.5, 0.5, (1 + root) / 4, 0.25, (1 - root) / 4};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(rates[i], expected[i], 1e-14) << i;
  }
}

EpochReport report(std::int64_t epoch, double loss) {
  EpochReport result{epoch, loss, {loss - 0.25, loss + 0.25}};
  result.validation_loss = 2 * loss;
  result.validation_loss_interval = Interval{loss, 3 * loss};
  return result;
}

TEST(LossCurve, Csv_HasALineAnEpochAndReadsBack) {
  const TemporaryFolder folder;
  std::vector<EpochReport> reports = {report(1, 2.5), report(2, 0.1)};
  for (EpochReport& each : reports) {
    each.validation_accuracy = 0.5;
    each.validation_accuracy_interval = Interval{0.25, 0.75};
  }
  write_loss_curve_csv(folder.file("c.csv"), reports);
  const Csv csv = read_csv_file(folder.file("c.csv"), DType::f64);
  EXPECT_THAT(csv.header,
              ElementsAre("epoch", "loss", "loss_low", "loss_high", "validation_loss",
                          "validation_loss_low", "validation_loss_high", "validation_accuracy",
                          "validation_accuracy_low", "validation_accuracy_high"));
  EXPECT_EQ(csv.values,
            Tensor::of<double>(
                {2, 10}, {1, 2.5, 2.25,       2.75,       5,   2.5, 7.5,     0.5, 0.25, 0.75,  //
                          2, 0.1, 0.1 - 0.25, 0.1 + 0.25, 0.2, 0.1, 3 * 0.1, 0.5, 0.25, 0.75}));
  write_loss_curve_csv(folder.file("c.csv"), std::vector{EpochReport{.epoch = 1, .loss = 3}});
  EXPECT_THAT(read_file(folder.file("c.csv")), HasSubstr("\n1,3,-inf,inf,,,,,,\n"));
}

TEST(LossCurve, Svg_HasAxesLabelsAndACurveForEachKindOfLoss) {
  const TemporaryFolder folder;
  const std::string path = folder.file("c.svg");
  write_loss_curve_svg(path, std::vector{report(1, 2), report(2, 1), report(3, 0.5)});
  const std::string both = read_file(path);
  EXPECT_TRUE(both.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(both.ends_with("</svg>\n"));
  // Losses 2, 1, 0.5 under an upper end of 4.2, where 350 is 0 and 20 the end.
  EXPECT_THAT(both, AllOf(HasSubstr("polyline points=\"70.0,192.9 345.0,271.4 620.0,310.7 \""),
                          HasSubstr(">epoch<"), HasSubstr(">loss<"), HasSubstr(">training<"),
                          HasSubstr(">validation<"), HasSubstr(">3<"), HasSubstr("polygon")));
  EXPECT_THAT(both, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));

  // One epoch, none, and losses that are no numbers still make a picture.
  for (const std::vector<EpochReport>& reports :
       {std::vector{EpochReport{.epoch = 1, .loss = 3}},
        {},
        {EpochReport{.epoch = 1, .loss = std::nan("")}, EpochReport{.epoch = 2, .loss = kInfinity}},
        {EpochReport{.epoch = 1, .loss = -1e300}, EpochReport{.epoch = 2, .loss = 1e-300}}}) {
    write_loss_curve_svg(path, reports);
    const std::string text = read_file(path);
    EXPECT_THAT(text, AllOf(HasSubstr(">epoch<"), Not(HasSubstr("nan")), Not(HasSubstr(">inf"))));
    EXPECT_LT(text.size(), 20000u);
  }
}

}  // namespace
}  // namespace mulgrad
