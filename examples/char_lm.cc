// A character transformer that learns to write like a text: trained for a target that has nothing
// but batched matrix products, elementwise arithmetic, reshape and transpose, after one step of a
// smaller one was checked on targets that have even less.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>

#include "autodiff/random.h"
#include "backends/trainer.h"

using namespace mulgrad;

namespace {

constexpr std::int64_t kContext = 32;  // characters that the next one may depend on

struct Text {
  std::string alphabet;           // the different characters, sorted
  std::vector<std::int32_t> ids;  // of each character of the text: its place in the alphabet
};

Text read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Category::io_error, path + ": cannot be read; --text names another file");
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (std::ssize(content) <= kContext) {
    throw Error(Category::invalid_data, path + ": found " + std::to_string(content.size()) +
                                            " characters, expected more than " +
                                            std::to_string(kContext));
  }
  Text text;
  text.alphabet = content;
  std::sort(text.alphabet.begin(), text.alphabet.end());
  text.alphabet.erase(std::unique(text.alphabet.begin(), text.alphabet.end()), text.alphabet.end());
  for (const char c : content) {
    text.ids.push_back(static_cast<std::int32_t>(text.alphabet.find(c)));
  }
  return text;
}

// Windows of the text, `stride` apart: `context` characters, and for each the one behind it.
Dataset windows(std::span<const std::int32_t> ids, std::int64_t context, std::int64_t stride) {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::int64_t rows = 0;
  for (std::int64_t first = 0; first + context < std::ssize(ids); first += stride, ++rows) {
    const auto window = ids.subspan(static_cast<std::size_t>(first));
    inputs.insert(inputs.end(), window.begin(), window.begin() + context);
    targets.insert(targets.end(), window.begin() + 1, window.begin() + context + 1);
  }
  return make_dataset(Tensor::of({rows, context}, inputs), Tensor::of({rows, context}, targets));
}

Sequential transformer(std::int64_t characters, std::int64_t context, std::int64_t width,
                       std::int64_t heads) {
  return Sequential{Embedding(characters, width),
                    PositionEmbedding(context, width),
                    transformer_block(width, heads, AttentionMask::causal),
                    transformer_block(width, heads, AttentionMask::causal),
                    LayerNorm(width),
                    Linear(width, characters)};
}

// Loss and parameters after one step, the loss first.
std::vector<Tensor> one_step(const Sequential& model, const Target& target, const Dataset& batch) {
  // Plain descent, so that a parameter differs by as much as its gradient does.
  Trainer trainer(model, softmax_cross_entropy, SGD({.rate = 1.0}),
                  {.target = target, .batch_size = batch.rows(), .seed = 1});
  std::vector<Tensor> result{Tensor::scalar(trainer.step(batch))};
  for (Tensor& value : trainer.values()) result.push_back(std::move(value));
  return result;
}

// The largest difference, in units of the largest element of the same tensor.
double difference(std::span<const Tensor> expected, std::span<const Tensor> found) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double> a = expected[i].to_doubles();
    const std::vector<double> b = found[i].to_doubles();
    double largest = 0;
    double apart = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      largest = std::max(largest, std::abs(a[j]));
      apart = std::max(apart, std::abs(a[j] - b[j]));
    }
    if (apart > 0) worst = std::max(worst, apart / largest);
  }
  return worst;
}

// Compiles a step of a smaller transformer for each target and compares what it leaves behind with
// the program as it was written.
void compare_targets(const Text& text) {
  constexpr std::int64_t kSmall = 8;
  constexpr double kMost = 1e-4;
  const Sequential model = transformer(std::ssize(text.alphabet), kSmall, 16, 2);
  const Dataset batch = windows(std::span(text.ids).first(3 * kSmall), kSmall, kSmall - 1);
  const std::vector<Tensor> direct = one_step(model, Target::cpu(), batch);
  for (const Target& target :
       {Target::matmul_batched(), Target::matmul_move(), Target::matmul_only()}) {
    const double apart = difference(direct, one_step(model, target, batch));
    std::printf("one step of a smaller one: target=%s max_relative_difference=%.1e\n",
                target.name().c_str(), apart);
    if (!(apart <= kMost)) {
      throw Error(Category::invalid_data, target.name() + ": found a step that differs by " +
                                              std::to_string(apart) + ", expected at most 1e-4");
    }
  }
}

// The next character, drawn by exp(logit / temperature); the likeliest for temperature 0.
std::int32_t draw(std::span<const float> logits, double temperature, RandomStream& random) {
  const auto top = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<std::int32_t>(top - logits.begin());
  std::vector<double> weights;
  double sum = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp(static_cast<double>(logit - *top) / temperature));
    sum += weights.back();
  }
  double rest = random.uniform_f64() * sum;
  std::size_t choice = 0;
  while (choice + 1 < weights.size() && rest >= weights[choice]) rest -= weights[choice++];
  return static_cast<std::int32_t>(choice);
}

// `characters` more characters after a line's end.
std::string write(Trainer& trainer, const Text& text, std::int64_t characters, double temperature,
                  std::uint64_t seed) {
  RandomStream random(seed, 1'000'000);  // a stream that no parameter is drawn from
  const std::size_t line_end = text.alphabet.find('\n');
  std::vector<std::int32_t> seen{
      line_end == std::string::npos ? 0 : static_cast<std::int32_t>(line_end)};
  std::string result;
  Tensor input(DType::i32, {1, kContext});
  for (std::int64_t i = 0; i < characters; ++i) {
    // Places behind the last character hold anything: attention does not look there.
    const std::int64_t count = std::min(std::ssize(seen), kContext);
    std::copy(seen.end() - count, seen.end(), input.data<std::int32_t>().begin());
    const Tensor logits = trainer.predict(input);  // [1, context, alphabet]
    const std::size_t size = text.alphabet.size();
    const auto last =
        logits.data<float>().subspan(static_cast<std::size_t>(count - 1) * size, size);
    seen.push_back(draw(last, temperature, random));
    result += text.alphabet[static_cast<std::size_t>(seen.back())];
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string path = "/usr/share/common-licenses/GPL-3";
  std::uint64_t seed = 0;
  std::int64_t epochs = 10;
  std::int64_t characters = 400;
  double temperature = 0.7;
  CLI::App app("Trains a character transformer for the target matmul_batched, then lets it write.");
  app.add_option("--text", path, "the file to learn")->capture_default_str();
  app.add_option("--epochs", epochs, "passes over the text")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "of the parameters, the shuffles and what is written");
  app.add_option("--temperature", temperature, "0: always the likeliest character")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--characters", characters, "to write")->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);

  const Text text = read_text(path);
  compare_targets(text);

  const Dataset data = windows(text.ids, kContext, kContext / 4);
  Trainer trainer(transformer(std::ssize(text.alphabet), kContext, 64, 4), softmax_cross_entropy,
                  AdamW({.rate = 3e-3}),
                  {.target = Target::matmul_batched(), .batch_size = 32, .seed = seed});
  const Coverage& coverage = trainer.prepared(data).coverage;
  const double before = trainer.loss(data);
  const auto start = std::chrono::steady_clock::now();
  trainer.fit(data, {.epochs = epochs, .on_epoch = [](const EpochReport& report) {
                       std::printf("epoch %2d  loss %.4f\n", static_cast<int>(report.epoch),
                                   report.loss);
                       std::fflush(stdout);
                     }});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const auto tokens = static_cast<double>(epochs * data.targets.elements());
  std::printf(
      "char_lm: loss=%.3f..%.3f tokens_per_second=%.0f target=%s unsupported=%zu fallbacks=%lld\n",
      before, trainer.loss(data), tokens / took.count(), coverage.target.c_str(),
      coverage.unsupported.size(), static_cast<long long>(trainer.fallbacks()));
  std::cout << write(trainer, text, characters, temperature, seed) << '\n';
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
