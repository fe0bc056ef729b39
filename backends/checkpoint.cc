#include "backends/checkpoint.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace mulgrad {
namespace {

constexpr char kVersionKey[] = "mulgrad.checkpoint";
constexpr char kVersion[] = "1";
constexpr std::string_view kParameter = "parameter/";
constexpr std::int64_t kReportColumns = 10;

std::string state_key(const std::string& parameter, const std::string& state) {
  return "state/" + parameter + "/" + state;
}

std::string best_key(const std::string& parameter) { return "best/" + parameter; }

std::string best_state_key(const std::string& parameter, const std::string& state) {
  return "best_" + state_key(parameter, state);
}

[[noreturn]] void bad(const std::string& entry, const std::string& message) {
  throw Error(Category::invalid_data, message, entry);
}

std::string hexadecimal(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

const std::string& text_of(const Safetensors& content, const std::string& key) {
  const auto found = content.metadata.find(key);
  if (found == content.metadata.end()) bad(key, "the checkpoint's metadata has no such entry");
  return found->second;
}

template <class T>
T number_of(const Safetensors& content, const std::string& key) {
  const std::string& text = text_of(content, key);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < T{}) {
    bad(key, "found \"" + text + "\", expected a number >= 0");
  }
  return value;
}

double float_of(const Safetensors& content, const std::string& key) {
  const std::string& text = text_of(content, key);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) {
    bad(key, "found \"" + text + "\", expected a hexadecimal float");
  }
  return value;
}

// The f64 elements of a tensor of `columns` columns.
std::span<const double> table_of(const Safetensors& content, const std::string& key,
                                 std::int64_t columns) {
  const Tensor* tensor = content.find(key);
  if (tensor == nullptr) bad(key, "the checkpoint has no such tensor");
  if (tensor->dtype() != DType::f64 || tensor->rank() != 2 || tensor->sizes()[1] != columns) {
    bad(key, "found " + tensor->type().to_string() + ", expected f64 of " +
                 std::to_string(columns) + " columns");
  }
  return tensor->data<double>();
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void append(std::vector<double>& row, const std::optional<double>& value,
            const std::optional<Interval>& interval) {
  row.push_back(value.value_or(kNone));
  row.push_back(interval ? interval->low : kNone);
  row.push_back(interval ? interval->high : kNone);
}

Tensor reports_to_tensor(std::span<const EpochReport> reports) {
  std::vector<double> rows;
  for (const EpochReport& report : reports) {
    rows.push_back(static_cast<double>(report.epoch));
    append(rows, report.loss, report.loss_interval);
    append(rows, report.validation_loss, report.validation_loss_interval);
    append(rows, report.validation_accuracy, report.validation_accuracy_interval);
  }
  return Tensor::of<double>({std::ssize(reports), kReportColumns}, rows);
}

// All but the number of the epoch, which is that of the row.
EpochReport report_of(std::span<const double> row) {
  // A NaN stands for none; a validation loss that is one reads as none, too.
  const auto value = [&](std::size_t i) {
    return row[i] == row[i] ? std::optional(row[i]) : std::nullopt;
  };
  const auto interval = [&](std::size_t i) {
    return value(i) ? std::optional(Interval{row[i], row[i + 1]}) : std::nullopt;
  };
  return {0, row[1], {row[2], row[3]}, value(4), interval(5), value(7), interval(8)};
}

std::string to_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

const Tensor& typed_as(const Tensor& parameter, const Safetensors& content,
                       const std::string& key) {
  const Tensor* tensor = content.find(key);
  if (tensor == nullptr) bad(key, "the checkpoint has no such tensor");
  if (!(tensor->type() == parameter.type())) {
    bad(key, "found " + tensor->type().to_string() + ", expected the parameter's " +
                 parameter.type().to_string());
  }
  return *tensor;
}

FitState fit_state(const Safetensors& content) {
  FitState fit;
  fit.epochs_done = number_of<std::int64_t>(content, "epochs_done");
  fit.rows = number_of<std::int64_t>(content, "rows");
  fit.best_epoch = number_of<std::int64_t>(content, "best_epoch");
  fit.stale_epochs = number_of<std::int64_t>(content, "stale_epochs");
  fit.best_value = float_of(content, "best_value");
  const std::span<const double> losses = table_of(content, "fit/losses", 2);
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < losses.size(); i += 2) {
    const double count = losses[i + 1];
    if (!(count >= 1 && count <= static_cast<double>(fit.rows - rows))) {
      bad("fit/losses", "found steps of more rows than the " + std::to_string(fit.rows) +
                            " of the epoch, or of none");
    }
    fit.losses.push_back({losses[i], static_cast<std::int64_t>(count)});
    rows += fit.losses.back().rows;
  }
  const std::span<const double> reports = table_of(content, "fit/reports", kReportColumns);
  if (std::cmp_not_equal(reports.size() / kReportColumns, fit.epochs_done)) {
    bad("fit/reports", "found " + std::to_string(reports.size() / kReportColumns) +
                           " reports, expected one for each of the " +
                           std::to_string(fit.epochs_done) + " epochs done");
  }
  for (std::size_t i = 0; i < reports.size(); i += kReportColumns) {
    fit.reports.push_back(report_of(reports.subspan(i, kReportColumns)));
    fit.reports.back().epoch = std::ssize(fit.reports);
  }
  if (fit.best_epoch > fit.epochs_done) {
    bad("best_epoch", "found epoch " + std::to_string(fit.best_epoch) + ", expected one of the " +
                          std::to_string(fit.epochs_done) + " done");
  }
  return fit;
}

}  // namespace

Safetensors to_safetensors(Checkpoint checkpoint) {
  Safetensors content;
  const FitState& fit = checkpoint.fit;
  const bool has_program = !checkpoint.program.empty();
  const bool has_best = !fit.best.parameters.empty();
  content.metadata = {{kVersionKey, kVersion},
                      {"count", std::to_string(checkpoint.count)},
                      {"seed", std::to_string(checkpoint.seed)},
                      {"state", to_lines(checkpoint.state_names)},
                      {"program", std::move(checkpoint.program)},
                      {"epochs_done", std::to_string(fit.epochs_done)},
                      {"rows", std::to_string(fit.rows)},
                      {"best_epoch", std::to_string(fit.best_epoch)},
                      {"stale_epochs", std::to_string(fit.stale_epochs)},
                      {"best_value", hexadecimal(fit.best_value)}};
  if (!checkpoint.layers.empty()) {
    content.metadata.emplace("layers", to_lines(checkpoint.layers));
  }
  if (checkpoint.ids) content.metadata.emplace("ids", std::to_string(*checkpoint.ids));
  if (has_best) content.metadata.emplace("best_count", std::to_string(fit.best.count));
  for (std::size_t i = 0; i < checkpoint.parameters.size(); ++i) {
    const std::string& name = checkpoint.parameters[i].name;
    Trained& best = checkpoint.fit.best;
    for (std::size_t k = 0; k < checkpoint.state_names.size(); ++k) {
      const std::string& state = checkpoint.state_names[k];
      content.tensors.push_back({state_key(name, state), std::move(checkpoint.state[i][k])});
      if (has_best) {
        content.tensors.push_back({best_state_key(name, state), std::move(best.state[i][k])});
      }
    }
    if (has_best) content.tensors.push_back({best_key(name), std::move(best.parameters[i])});
    content.tensors.push_back(
        {std::string(kParameter) + name, std::move(checkpoint.parameters[i].tensor)});
  }
  std::vector<double> losses;
  for (const PartMean& part : fit.losses) {
    losses.push_back(part.value);
    losses.push_back(static_cast<double>(part.rows));
  }
  content.tensors.push_back(
      {"fit/losses", Tensor::of<double>({std::ssize(fit.losses), 2}, losses)});
  content.tensors.push_back({"fit/reports", reports_to_tensor(fit.reports)});
  if (has_program) content.tensors.push_back({"input", std::move(checkpoint.input)});
  return content;
}

Checkpoint to_checkpoint(Safetensors content) {
  if (text_of(content, kVersionKey) != kVersion) {
    bad(kVersionKey,
        "found version \"" + text_of(content, kVersionKey) + "\", expected \"" + kVersion + "\"");
  }
  Checkpoint checkpoint;
  checkpoint.count = number_of<std::int64_t>(content, "count");
  checkpoint.seed = number_of<std::uint64_t>(content, "seed");
  checkpoint.state_names = lines_of(text_of(content, "state"));
  if (content.metadata.contains("layers")) {
    checkpoint.layers = lines_of(text_of(content, "layers"));
  }
  checkpoint.program = text_of(content, "program");
  if (!checkpoint.program.empty()) {
    const Tensor* input = content.find("input");
    if (input == nullptr || input->rank() == 0) bad("input", "the checkpoint has no such rows");
    checkpoint.input = *input;
  }
  if (content.metadata.contains("ids")) {
    checkpoint.ids = number_of<std::int64_t>(content, "ids");
  }
  checkpoint.fit = fit_state(content);
  Trained& best = checkpoint.fit.best;
  for (const NamedTensor& each : content.tensors) {
    if (!each.name.starts_with(kParameter)) continue;
    const std::string name = each.name.substr(kParameter.size());
    std::vector<Tensor>& state = checkpoint.state.emplace_back();
    for (const std::string& state_name : checkpoint.state_names) {
      state.push_back(typed_as(each.tensor, content, state_key(name, state_name)));
    }
    // What is kept of the best epoch is all there or nothing is.
    if (content.find(best_key(name)) != nullptr || !best.parameters.empty()) {
      best.parameters.push_back(typed_as(each.tensor, content, best_key(name)));
      std::vector<Tensor>& best_state = best.state.emplace_back();
      for (const std::string& state_name : checkpoint.state_names) {
        best_state.push_back(typed_as(each.tensor, content, best_state_key(name, state_name)));
      }
    }
    checkpoint.parameters.push_back({name, each.tensor});
  }
  if (!best.parameters.empty()) {
    if (best.parameters.size() != checkpoint.parameters.size()) {
      bad(best_key(checkpoint.parameters[0].name), "the checkpoint has no such tensor");
    }
    best.count = number_of<std::int64_t>(content, "best_count");
  }
  return checkpoint;
}

void write_checkpoint(const std::string& path, Checkpoint checkpoint) {
  write_safetensors_file(path, to_safetensors(std::move(checkpoint)));
}

Checkpoint read_checkpoint(const std::string& path) {
  Safetensors content = read_safetensors_file(path);
  try {
    return to_checkpoint(std::move(content));
  } catch (const Error& error) {
    throw error.at_location(path);
  }
}

}  // namespace mulgrad
