// Whole training steps, as a user runs them, beside the same steps written by hand (bench/floor.h),
// in turns. bench/run.sh adds what JAX and PyTorch take.
#include <pthread.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "autodiff/random.h"
#include "backends/trainer.h"
#include "bench/floor.h"
#include "bench/models.h"
#include "bench/turns.h"

namespace mulgrad::bench {
namespace {

using Micros = std::optional<double>;
// Keeps this thread, and those that it starts from now on, on the first `cores` of its cores.
void pin_to(int cores, const cpu_set_t& allowed) {
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&chosen) < cores; ++core) {
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &chosen);
  }
  pthread_setaffinity_np(pthread_self(), sizeof(chosen), &chosen);
}

// A model with a batch, and what it is measured by.
struct Row {
  std::string name;
  Sequential model;
  Dataset batch;
  Rule rule;
  std::vector<std::int64_t> widths;  // of a network that HandWritten makes; else products alone
};

std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t bound, RandomStream& random) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::int32_t& id : ids) {
    id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(bound)));
  }
  return ids;
}

Row network(std::vector<std::int64_t> widths, std::int64_t rows, Rule rule) {
  std::vector<std::shared_ptr<const Layer>> layers;
  std::string name;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) layers.push_back(std::make_shared<const ReLU>());
    layers.push_back(std::make_shared<const Linear>(widths[i], widths[i + 1]));
    name += std::to_string(widths[i]) + "-";
  }
  name += std::to_string(widths.back()) + " B" + std::to_string(rows);
  RandomStream random(1, 0);
  Tensor inputs(DType::f32, {rows, widths.front()});
  for (float& value : inputs.data<float>()) value = random.uniform_f32();
  Tensor labels = Tensor::of({rows}, random_ids(rows, widths.back(), random));
  return {name + (rule == Rule::sgd ? " SGD" : " AdamW"), Sequential(std::move(layers)),
          make_dataset(std::move(inputs), std::move(labels)), rule, std::move(widths)};
}

Row transformer() {
  const TransformerSizes sizes;
  RandomStream random(1, 0);
  const auto random_places = [&] {
    return Tensor::of({sizes.batch, sizes.context},
                      random_ids(sizes.batch * sizes.context, sizes.vocabulary, random));
  };
  Tensor ids = random_places();
  Tensor labels = random_places();
  return {"char L4 d128 h4 T64 B12 V65 AdamW",
          char_transformer(sizes),
          make_dataset(std::move(ids), std::move(labels)),
          Rule::adamw,
          {}};
}

std::vector<Row> rows() {
  std::vector<Row> result;
  for (const Rule rule : {Rule::sgd, Rule::adamw}) {
    result.push_back(network({2, 8, 2}, 4, rule));
    result.push_back(network({784, 128, 10}, 1, rule));
    result.push_back(network({784, 128, 10}, 32, rule));
    result.push_back(network({784, 128, 10}, 128, rule));
    result.push_back(network({784, 500, 10}, 500, rule));
    result.push_back(network({784, 512, 512, 10}, 128, rule));
  }
  result.push_back(transformer());
  return result;
}

Trainer make_trainer(const Row& row, const Target& target, int threads) {
  std::shared_ptr<const Optimizer> optimizer;
  if (row.rule == Rule::sgd) {
    optimizer = std::make_shared<const SGD>(SGD::Settings{.rate = kSgdRate});
  } else {
    optimizer = std::make_shared<const AdamW>(AdamW::Settings{.rate = kAdamRate});
  }
  return {row.model,
          softmax_cross_entropy,
          optimizer,
          {.target = target, .batch_size = row.batch.rows(), .seed = 0, .threads = threads}};
}

struct Result {
  std::string name;
  int threads;
  Micros ours, floor, matmul_only;
};

// What the row is measured by; the loss is NaN where it computes none.
std::function<double(int)> floor_of(const Row& row, const std::vector<Tensor>& parameters,
                                    int threads) {
  std::function<double()> step;
  if (row.widths.empty()) {
    step = [products = std::make_shared<TransformerProducts>(TransformerSizes{})] {
      products->step();
      return std::nan("");
    };
  } else {
    const auto net = std::make_shared<HandWritten>(row.widths, parameters, row.rule);
    step = [net, &batch = row.batch] {
      return static_cast<double>(net->step(batch.inputs, batch.targets));
    };
  }
  return [step = std::move(step), threads](int steps) {
    if (threads > 1) use_blas_threads(threads);
    double loss = 0;
    for (int i = 0; i < steps; ++i) loss = step();
    if (threads > 1) use_blas_threads(1);
    return loss;
  };
}

// Throws invalid_data when the contenders do not compute the same.
void check_equal_losses(std::span<Contender> contenders, const std::string& name) {
  const double expected = contenders[0].run(3);
  for (Contender& contender : contenders.subspan(1)) {
    const double found = contender.run(3);
    if (std::isnan(found) || std::abs(found - expected) <= 1e-4 * std::abs(expected)) continue;
    throw Error(Category::invalid_data, name + ": after 3 steps found a loss of " +
                                            std::to_string(found) + ", expected " +
                                            std::to_string(expected));
  }
}

Result measure_row(const Row& row, int threads, double seconds, double (*now)()) {
  Trainer direct = make_trainer(row, Target::cpu(), threads);
  Trainer matmul_only = make_trainer(row, Target::matmul_only(), threads);
  const auto steps_of = [&row](Trainer& trainer) {
    return [&](int steps) {
      double loss = 0;
      for (int i = 0; i < steps; ++i) loss = trainer.step(row.batch);
      return loss;
    };
  };
  Contender contenders[] = {
      {steps_of(direct)}, {steps_of(matmul_only)}, {floor_of(row, direct.values(), threads)}};
  check_equal_losses(contenders, row.name);
  if (threads == 1) {
    take_turns(contenders, seconds, now);
  } else {
    // BLAS's own threads spin on for milliseconds after a call, on the cores of whoever is next.
    take_turns(std::span(contenders).first(2), seconds, now);
    take_turns(std::span(contenders).last(1), seconds, now);
  }
  return {row.name, threads, contenders[0].best, contenders[2].best, contenders[1].best};
}

// What another program measured: lines "name<tab>threads<tab>microseconds".
class Peer {
 public:
  Peer() = default;
  explicit Peer(const std::string& path) {
    if (path.empty()) return;
    std::ifstream file(path);
    if (!file) throw Error(Category::io_error, path + ": cannot be read");
    for (std::string line; std::getline(file, line);) {
      const std::size_t last = line.rfind('\t');
      if (last == std::string::npos) {
        throw Error(Category::invalid_data, path + ": found '" + line + "', expected three fields");
      }
      times_[line.substr(0, last)] = std::stod(line.substr(last + 1));
    }
  }
  Micros operator[](const Result& result) const {
    const auto found = times_.find(result.name + '\t' + std::to_string(result.threads));
    return found == times_.end() ? Micros() : found->second;
  }

 private:
  std::map<std::string, double> times_;
};

std::string cell(const Micros& value, const char* format) {
  if (!value) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), format, *value);
  return text;
}

Micros ratio(const Micros& a, const Micros& b) { return a && b ? Micros(*a / *b) : Micros(); }

}  // namespace

int run(int argc, char** argv) {
  std::string filter = ".";
  std::string json_path;
  std::string jax_path;
  std::string torch_path;
  double seconds = 0.5;
  bool busy = false;
  std::vector<int> threads{1, 2};
  CLI::App app("Times training steps beside hand-written ones.");
  app.add_option("--filter", filter,
                 "a regular expression that the names of rows are searched for");
  app.add_option("--threads", threads, "numbers of threads")->delimiter(',');
  app.add_option("--seconds", seconds, "for each contender of a row");
  app.add_flag("--busy", busy, "counts the time of the one thread, on a machine with other work");
  app.add_option("--json", json_path, "where to write the times as JSON");
  app.add_option("--jax", jax_path, "times of JAX: lines of name, threads, microseconds");
  app.add_option("--torch", torch_path, "the same of PyTorch");
  CLI11_PARSE(app, argc, argv);

  const Peer jax(jax_path);
  const Peer torch(torch_path);
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::printf("%-34s %7s %10s %10s %10s %10s %10s | %7s %7s %7s %8s\n", "step, us", "threads",
              "ours", "by hand", "matmul_o.", "jax", "torch", "/hand", "/jax", "/torch", "mm/ours");
  for (const int count : threads) {
    if (count > CPU_COUNT(&allowed)) {
      std::fprintf(stderr, "step_bench: %d threads need more cores than there are\n", count);
      continue;
    }
    pin_to(count, allowed);
    for (const Row& row : rows()) {
      if (!std::regex_search(row.name, std::regex(filter))) continue;
      const Result result =
          measure_row(row, count, seconds, busy && count == 1 ? thread_clock : wall_clock);
      const Micros others[] = {jax[result], torch[result]};
      std::printf("%-34s %7d %10s %10s %10s %10s %10s | %7s %7s %7s %8s\n", result.name.c_str(),
                  count, cell(result.ours, "%.2f").c_str(), cell(result.floor, "%.2f").c_str(),
                  cell(result.matmul_only, "%.2f").c_str(), cell(others[0], "%.2f").c_str(),
                  cell(others[1], "%.2f").c_str(),
                  cell(ratio(result.ours, result.floor), "%.3f").c_str(),
                  cell(ratio(result.ours, others[0]), "%.3f").c_str(),
                  cell(ratio(result.ours, others[1]), "%.3f").c_str(),
                  cell(ratio(result.matmul_only, result.ours), "%.3f").c_str());
      std::fflush(stdout);
      const auto value = [](const Micros& time) {
        return time ? nlohmann::ordered_json(*time) : nlohmann::ordered_json();
      };
      list.push_back({{"name", result.name},
                      {"threads", count},
                      {"ours_us", value(result.ours)},
                      {"floor_us", value(result.floor)},
                      {"matmul_only_us", value(result.matmul_only)},
                      {"jax_us", value(others[0])},
                      {"torch_us", value(others[1])}});
    }
  }
  if (!json_path.empty()) {
    std::ofstream file(json_path);
    file << list.dump(1) << '\n';
    if (!file.flush()) throw Error(Category::io_error, json_path + ": cannot be written");
  }
  return 0;
}

}  // namespace mulgrad::bench

int main(int argc, char** argv) try {
  return mulgrad::bench::run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
