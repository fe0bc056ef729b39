// Our own two passes on every case of the suite, in this process, to the last word.
#include "tests/matcher/suite/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

#include "core/op.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "tests/support/golden_cases.h"

namespace mulgrad::matcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kFolder = MULGRAD_SOURCE_DIR "/tests/matcher/cases";

bool updates_goldens() {
  const char* const variable = std::getenv("MULGRAD_UPDATE_GOLDENS");
  return variable != nullptr && std::string_view(variable) == "1";
}

testing::Claim expected_claim(const Case& expected) {
  switch (expected.expect) {
    case Expect::rewritten:
      return testing::Claim::changes;
    case Expect::unchanged:
      return testing::Claim::not_applied;
    case Expect::error:
      return expected.by == RefusedBy::reader ? testing::Claim::unbuildable
                                              : testing::Claim::refused;
  }
  return testing::Claim::changes;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The case with the wording that our pass has today.
Case reworded(Case given, const testing::Outcome& outcome) {
  switch (given.expect) {
    case Expect::rewritten:
      given.rewritten = outcome.text;
      break;
    case Expect::unchanged:
      given.explain = lines_of(outcome.text);
      break;
    case Expect::error:
      given.message = lines_of(outcome.text).at(0);
      break;
  }
  return given;
}

void check_wording(const Case& given, const Case& found) {
  EXPECT_EQ(found.rewritten, given.rewritten);
  EXPECT_EQ(found.explain, given.explain);
  EXPECT_EQ(found.message, given.message);
  std::string wording = given.message;
  for (const std::string& line : given.explain) wording += line + "\n";
  EXPECT_THAT(wording, HasSubstr(given.category));
  const std::size_t clause = wording.find("clause ");
  ASSERT_EQ(given.clause.has_value(), clause != std::string::npos);
  if (given.clause) {
    EXPECT_EQ(wording[clause + 7] - '0', *given.clause) << wording;
  }
}

void check_cases(const Pass& pass) {
  const std::vector<Case> cases = read_cases(kFolder, pass.name);
  std::ptrdiff_t positives = 0;
  for (const Case& given : cases) {
    SCOPED_TRACE(given.name());
    positives += given.expect == Expect::rewritten;
    EXPECT_EQ(expected_claim(given), testing::claim_of(given.claim));
    const testing::Outcome outcome = testing::outcome_of(pass, given.program);
    ASSERT_EQ(outcome.claim, expected_claim(given)) << outcome.text;
    const Case found = reworded(given, outcome);
    if (updates_goldens()) {
      write_wording(found);
    } else {
      check_wording(given, found);
    }
  }
  std::cout << pass.name << ": " << cases.size() << " cases, " << positives << " positives\n";
  EXPECT_GE(positives, 20);
}

TEST(MatcherCases, ExpandMean_DoesWhatEachCaseClaims) { check_cases(expand_mean()); }

TEST(MatcherCases, ExpandMeanDerivative_DoesWhatEachCaseClaims) {
  check_cases(expand_mean_derivative());
}

// A clause that no near miss turns on could be dropped unseen. Clause 6 holds by construction: the
// reader refuses what would break it.
TEST(MatcherCases, EveryClause_HasANearMissOfItsOwn) {
  std::set<int> clauses;
  for (const Case& given : read_cases(kFolder, "expand_mean_derivative")) {
    if (given.clause) clauses.insert(*given.clause);
  }
  EXPECT_EQ(clauses, (std::set<int>{1, 2, 3, 4, 5, 7}));
}

// A misspelt op in `left` would be found nowhere, and 0 of it would always be right.
TEST(MatcherCases, Left_NamesOpsThatExist) {
  std::set<std::string_view> ops;
  for (const OpInfo& op : all_ops()) ops.insert(op.text_name);
  for (const Case& given : read_cases(kFolder)) {
    EXPECT_EQ(given.left.empty(), given.expect != Expect::rewritten) << given.name();
    for (const auto& [op, count] : given.left) EXPECT_TRUE(ops.contains(op)) << op;
  }
}

// The README's tables of rows: "| row | cases |", or "| row | Suite.Test |" where no text can be
// written.
struct Rows {
  std::set<std::string> with_cases;
  std::set<std::string> tests;
};

Rows rows_of_readme() {
  Rows rows;
  const std::string text = read_file(kFolder / "README.md");
  const std::regex row(R"(\| (.+) \| (cases|`\w+\.\w+`) \|)");
  std::smatch found;
  for (const std::string& line : lines_of(text)) {
    if (!std::regex_match(line, found, row)) continue;
    if (found[2] == "cases") {
      rows.with_cases.insert(found[1]);
    } else {
      rows.tests.insert(found[2].str().substr(1, found[2].length() - 2));
    }
  }
  return rows;
}

TEST(MatcherCases, EveryRow_HasACaseOrANamedTest) {
  const Rows rows = rows_of_readme();
  std::set<std::string> covered;
  for (const Case& given : read_cases(kFolder)) covered.insert(given.row);
  EXPECT_EQ(covered, rows.with_cases);
  EXPECT_GE(rows.tests.size(), 5u);
  for (const std::string& name : rows.tests) {
    const std::size_t dot = name.find('.');
    const std::string definition =
        "TEST(" + name.substr(0, dot) + ", " + name.substr(dot + 1) + ")";
    bool defined = false;
    for (const auto& entry : fs::recursive_directory_iterator(MULGRAD_SOURCE_DIR "/tests")) {
      if (!entry.path().string().ends_with("_test.cc")) continue;
      defined = defined || read_file(entry.path()).find(definition) != std::string::npos;
    }
    EXPECT_TRUE(defined) << definition;
  }
}

}  // namespace
}  // namespace mulgrad::matcher
