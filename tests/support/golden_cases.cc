#include "tests/support/golden_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad::testing {
namespace {

constexpr std::string_view kSeparator = "// -----\n";

Outcome error_outcome(Claim claim, const Error& error) {
  return {claim, std::string(error.what()) + "\n"};
}

void check_change(const Pass& pass, const Program& source, const PassResult& result) {
  verify(result.program);
  const PassResult again = pass.run(result.program);
  EXPECT_FALSE(again.changed) << "a second run changes something";
  EXPECT_EQ(again.program, result.program);
  EXPECT_TRUE(again.regions.empty());
  for (const Region& region : result.regions) {
    EXPECT_EQ(region.pass, pass.name);
    for (const std::int64_t node : region.emitted) {
      EXPECT_EQ(result.program.origins()[static_cast<std::size_t>(node)], region.origin);
    }
  }
  const std::vector<Pass> passes = {pass};
  EXPECT_EQ(run_passes(source, pass.accepts.front(), passes).program, result.program);

  const auto is_small = [](const Node& node) {
    std::int64_t elements = 1;
    for (const Dim& dim : node.type.shape) {
      if (__builtin_mul_overflow(elements, std::max<std::int64_t>(dim.coefficient(), 1),
                                 &elements)) {
        return false;
      }
    }
    return elements <= 100'000;
  };
  if (std::ranges::all_of(source.nodes(), is_small) &&
      std::ranges::all_of(result.program.nodes(), is_small)) {
    EXPECT_TRUE(same_values(source, result.program, pass.numerics));
  }
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string second_part(const Outcome& outcome) {
  switch (outcome.claim) {
    case Claim::changes:
      return outcome.text;
    case Claim::not_applied:
      return "unchanged\n" + outcome.text;
    case Claim::refused:
    case Claim::unbuildable:
      return "error\n" + outcome.text;
  }
  return {};
}

}  // namespace

Claim claim_of(const std::string& name) {
  if (name.starts_with("not_applied_")) return Claim::not_applied;
  if (name.starts_with("refused_")) return Claim::refused;
  if (name.starts_with("unbuildable_")) return Claim::unbuildable;
  return Claim::changes;
}

Outcome outcome_of(const Pass& pass, const std::string& text, const CustomRegistry& customs) {
  std::optional<Program> parsed;
  try {
    parsed = parse(text, {"case", customs});
  } catch (const Error& error) {
    return error_outcome(Claim::unbuildable, error);
  }
  const Program source = parsed->with_fresh_origins();
  const std::string before = print(source);
  try {
    const PassResult result = pass.run(source);
    EXPECT_EQ(print(source), before) << "the pass changed its source";
    EXPECT_EQ(result.changed, !(result.program == source));
    if (!result.changed) {
      EXPECT_TRUE(result.regions.empty());
      std::string lines;
      if (pass.explain) {
        for (const std::string& line : pass.explain(source)) lines += line + "\n";
      }
      return {Claim::not_applied, lines};
    }
    check_change(pass, source, result);
    const std::string after = print(result.program);
    EXPECT_EQ(parse(after, {"result", customs}), result.program);
    return {Claim::changes, after};
  } catch (const Error& error) {
    EXPECT_EQ(print(source), before) << "the pass changed its source";
    return error_outcome(Claim::refused, error);
  }
}

void check_golden_cases(const Pass& pass, const CustomRegistry& customs) {
  const char* const variable = std::getenv("MULGRAD_UPDATE_GOLDENS");
  const bool update = variable != nullptr && std::string_view(variable) == "1";
  const auto folder =
      std::filesystem::path(MULGRAD_SOURCE_DIR) / "tests/lowering/cases" / pass.name;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty());
  for (const auto& path : paths) {
    SCOPED_TRACE(pass.name + "/" + path.filename().string());
    const std::string content = read(path);
    const std::size_t separator = content.find(kSeparator);
    const std::string source = content.substr(0, separator);
    const Outcome outcome = outcome_of(pass, source, customs);
    EXPECT_EQ(outcome.claim, claim_of(path.stem().string()))
        << "the case does not do what its name claims:\n"
        << outcome.text;
    if (update) {
      std::ofstream(path, std::ios::binary) << source << kSeparator << second_part(outcome);
    } else {
      ASSERT_NE(separator, std::string::npos) << "the case has no second part";
      EXPECT_EQ(content.substr(separator + kSeparator.size()), second_part(outcome));
    }
  }
}

}  // namespace mulgrad::testing
