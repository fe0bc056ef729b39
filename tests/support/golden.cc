#include "tests/support/golden.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace mulgrad::testing {
namespace {

std::string full_path(const std::string& path) {
  return MULGRAD_SOURCE_DIR "/tests/goldens/" + path;
}

std::string read(const std::string& path) {
  std::ifstream file(full_path(path));
  if (!file) throw std::runtime_error("cannot read tests/goldens/" + path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace

nlohmann::json read_golden(const std::string& path) { return nlohmann::json::parse(read(path)); }

::testing::AssertionResult matches_golden(std::string_view text, const std::string& path) {
  if (std::getenv("MULGRAD_UPDATE_GOLDENS") != nullptr) {
    std::ofstream file(full_path(path));
    file << text;
    if (file.flush()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "cannot write tests/goldens/" << path;
  }
  const std::string want = read(path);
  if (text == want) return ::testing::AssertionSuccess();
  std::istringstream got_lines{std::string(text)};
  std::istringstream want_lines(want);
  std::string got_line, want_line;
  int line = 0;
  do {
    ++line;
    got_line = want_line = "<end>";
    std::getline(got_lines, got_line);
    std::getline(want_lines, want_line);
  } while (got_line == want_line && got_lines && want_lines);
  return ::testing::AssertionFailure()
         << "tests/goldens/" << path << ":" << line << ": found\n  " << got_line << "\nexpected\n  "
         << want_line << "\n(MULGRAD_UPDATE_GOLDENS=1 rewrites the file); the whole text:\n"
         << text;
}

}  // namespace mulgrad::testing
