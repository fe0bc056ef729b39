// mulgrad-matcher-suite: the cases of the matcher against any rewriter. README, "The matcher
// suite".
//
// Exit codes: 0 every case passes; 1 the cases cannot be read; 2 the command line is wrong; 4 a
// case fails.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/matcher/suite/cases.h"
#include "tests/matcher/suite/judge.h"
#include "tests/matcher/suite/process.h"

using namespace mulgrad;
using namespace mulgrad::matcher;

namespace {

constexpr int kUnreadable = 1;
constexpr int kUsage = 2;
constexpr int kFailed = 4;

struct Arguments {
  std::string command;
  std::string cases = MULGRAD_SOURCE_DIR "/tests/matcher/cases";
  std::string pass;
  double seconds = 10;
  bool exact = false;
  bool json = false;
};

struct Result {
  const Case* asked;
  std::optional<std::string> fault;
};

struct Counts {
  int cases = 0;
  int positives = 0;
  int failed = 0;
};

const char* name_of(Expect expect) {
  switch (expect) {
    case Expect::rewritten:
      return "rewritten";
    case Expect::unchanged:
      return "unchanged";
    case Expect::error:
      return "error";
  }
  return "";
}

std::string for_pass(std::string command, const std::string& pass) {
  constexpr std::string_view kPlace = "{pass}";
  for (std::size_t at = 0; (at = command.find(kPlace, at)) != std::string::npos;
       at += pass.size()) {
    command.replace(at, kPlace.size(), pass);
  }
  return command;
}

std::string line_of(const Result& result) {
  const Case& asked = *result.asked;
  std::string line = (result.fault ? "FAIL " : "pass ") + asked.name();
  if (asked.clause) line += "  clause " + std::to_string(*asked.clause);
  if (result.fault) line += "  " + *result.fault;
  return line;
}

nlohmann::ordered_json json_of(const Result& result) {
  const Case& asked = *result.asked;
  nlohmann::ordered_json json{{"pass", asked.pass},
                              {"claim", asked.claim},
                              {"row", asked.row},
                              {"expect", name_of(asked.expect)},
                              {"passed", !result.fault.has_value()}};
  if (asked.clause) json["clause"] = *asked.clause;
  if (result.fault) json["why"] = *result.fault;
  return json;
}

int run(const Arguments& given) {
  const std::vector<Case> cases = read_cases(given.cases, given.pass);
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * given.seconds));
  const Level level = given.exact ? Level::exact : Level::meaning;
  Counts counts;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Case& asked : cases) {
    const Reply reply = run_command(for_pass(given.command, asked.pass), asked.program, limit);
    const Result result{&asked, fault(asked, reply, level)};
    ++counts.cases;
    counts.positives += asked.expect == Expect::rewritten;
    counts.failed += result.fault.has_value();
    if (given.json) {
      list.push_back(json_of(result));
    } else {
      std::printf("%s\n", line_of(result).c_str());
      std::fflush(stdout);
    }
  }
  if (given.json) {
    const nlohmann::ordered_json json{{"version", 1},
                                      {"command", given.command},
                                      {"cases", counts.cases},
                                      {"positives", counts.positives},
                                      {"failed", counts.failed},
                                      {"results", list}};
    // What a rewriter says need not be UTF-8.
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%d cases, %d of them positive: %d pass, %d fail\n", counts.cases, counts.positives,
                counts.cases - counts.failed, counts.failed);
  }
  return counts.failed > 0 ? kFailed : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments given;
  CLI::App app{"Feeds every case of the matcher suite to a rewriter and judges what it prints."};
  app.add_option("--exec", given.command,
                 "the rewriter: a shell command that reads a program on standard input and prints "
                 "one; {pass} stands for the name of the pass")
      ->required();
  app.add_option("--cases", given.cases, "the folder of the cases")->capture_default_str();
  app.add_option("--pass", given.pass, "only the cases of this pass");
  app.add_option("--time-limit", given.seconds, "seconds that a case may take")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  app.add_flag("--exact", given.exact, "demand our own region and our own error category as well");
  app.add_flag("--json", given.json, "print one JSON object instead of lines");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    return run(given);
  } catch (const std::exception& error) {  // Error, or no process to be had
    std::fprintf(stderr, "mulgrad-matcher-suite: %s\n", error.what());
    return kUnreadable;
  }
}
