// Trains a small network on handwritten digits with nothing but matrix products, elementwise
// arithmetic, reshape and transpose: the whole step is compiled for the target matmul_only.
#include "examples/data/digits.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "backends/trainer.h"
#include "core/csv.h"

using namespace mulgrad;

int main(int argc, char** argv) try {
  std::uint64_t seed = 0;
  std::int64_t epochs = 30;
  CLI::App app("Trains on handwritten digits for the target matmul_only.");
  app.add_option("--seed", seed, "of the split, the initial parameters and the shuffles");
  app.add_option("--epochs", epochs, "passes over the training rows")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const Csv csv = read_csv(examples::digits_csv(), DType::f32, "digits.csv");
  const Dataset digits = classification_from_csv(csv, "label", 10, 1.0 / 16);
  const auto [train, held_out] = digits.split(0.2, seed);

  const Sequential model{Linear(64, 64), ReLU(), Linear(64, 10)};
  Trainer trainer(model, softmax_cross_entropy, AdamW({.rate = 1e-2, .weight_decay = 0.02}),
                  {.target = Target::matmul_only(), .batch_size = 32, .seed = seed});
  const Coverage& coverage = trainer.prepared(train).coverage;
  std::cout << coverage.print() << '\n';

  trainer.fit(train, {.epochs = epochs, .validation = held_out, .on_epoch = [](const auto& report) {
                        std::printf("epoch %2d  loss %.4f  held-out loss %.4f  accuracy %.4f\n",
                                    static_cast<int>(report.epoch), report.loss,
                                    *report.validation_loss, *report.validation_accuracy);
                      }});

  std::printf(
      "digits: accuracy=%.3f seed=%llu epochs=%lld target=%s unsupported=%zu fallbacks=%lld\n",
      accuracy(trainer.predict(held_out.inputs), held_out.targets),
      static_cast<unsigned long long>(seed), static_cast<long long>(epochs),
      coverage.target.c_str(), coverage.unsupported.size(),
      static_cast<long long>(trainer.fallbacks()));
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
