// The cases of the matcher suite as data: tests/matcher/cases/README.md tells their format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rewrite/numerics.h"

namespace mulgrad::matcher {

enum class Expect : std::uint8_t { rewritten, unchanged, error };
enum class RefusedBy : std::uint8_t { reader, pass };

struct Case {
  std::filesystem::path file;  // of the program
  std::string pass;
  std::string claim;    // the file's name
  std::string program;  // its text
  std::string row;      // of the tables in the README
  Expect expect = Expect::unchanged;
  std::optional<int> clause;  // the first that fails
  bool native_only = false;

  std::string rewritten;            // rewritten: our own result
  std::map<std::string, int> left;  // rewritten: by the name of an op, how many nodes of it remain
  Numerics numerics;                // rewritten: what may change in the values

  RefusedBy by = RefusedBy::pass;    // error
  std::string category;              // error
  std::string message;               // error: our own wording
  std::vector<std::string> explain;  // unchanged: our own wording

  std::string name() const { return pass + "/" + claim; }
};

std::string read_file(const std::filesystem::path& file);

// All cases below `folder`, or those of one pass, sorted by pass and claim. Throws Error: io_error
// where a file cannot be read or there is no case at all, parse_error where an expectation does not
// have the format, both located at the file.
std::vector<Case> read_cases(const std::filesystem::path& folder, const std::string& pass = {});

// Writes back what is in our own wording: `rewritten`, `explain` and `message`.
void write_wording(const Case& written);

}  // namespace mulgrad::matcher
