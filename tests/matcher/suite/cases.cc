#include "tests/matcher/suite/cases.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"

namespace mulgrad::matcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path beside(const fs::path& program, const char* extension) {
  return fs::path(program).replace_extension(extension);
}

template <class T>
T one_of(const std::string& text, std::initializer_list<std::pair<const char*, T>> known) {
  for (const auto& [name, value] : known) {
    if (text == name) return value;
  }
  throw std::invalid_argument("found \"" + text + "\", expected \"" + known.begin()->first +
                              "\" or the like");
}

Numerics numerics_of(const Json& json) {
  return {.sign_of_zero = json.value("sign_of_zero", false),
          .finite_only = json.value("finite_only", false),
          .reassociates = json.value("reassociates", false),
          .ulp = json.value("ulp", 0)};
}

void read_expectation(const Json& json, Case& read) {
  if (const int version = json.at("version").get<int>(); version != 1) {
    throw std::invalid_argument("found version " + std::to_string(version) + ", expected 1");
  }
  json.at("row").get_to(read.row);
  read.native_only = json.value("native_only", false);
  if (json.contains("clause")) read.clause = json["clause"].get<int>();
  read.expect =
      one_of<Expect>(json.at("expect").get<std::string>(), {{"rewritten", Expect::rewritten},
                                                            {"unchanged", Expect::unchanged},
                                                            {"error", Expect::error}});
  switch (read.expect) {
    case Expect::rewritten:
      json.at("left").get_to(read.left);
      read.numerics = numerics_of(json.at("numerics"));
      read.rewritten = read_file(beside(read.file, ".out.mlir"));
      return;
    case Expect::unchanged:
      json.at("explain").get_to(read.explain);
      return;
    case Expect::error:
      read.by = one_of<RefusedBy>(json.at("by").get<std::string>(),
                                  {{"reader", RefusedBy::reader}, {"pass", RefusedBy::pass}});
      json.at("category").get_to(read.category);
      json.at("message").get_to(read.message);
      return;
  }
}

Case read_case(const fs::path& file) {
  Case read;
  read.file = file;
  read.pass = file.parent_path().filename().string();
  read.claim = file.stem().string();
  read.program = read_file(file);
  const fs::path expectation = beside(file, ".expect.json");
  try {
    read_expectation(Json::parse(read_file(expectation)), read);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& fault) {  // of the JSON library, or of ours above
    throw Error(Category::parse_error, fault.what(), {}, expectation.string());
  }
  return read;
}

bool is_program(const fs::path& file) {
  return file.extension() == ".mlir" && file.stem().extension() != ".out";
}

}  // namespace

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw Error(Category::io_error, "cannot read the file", {}, file.string());
  return text.str();
}

std::vector<Case> read_cases(const fs::path& folder, const std::string& pass) {
  std::vector<fs::path> files;
  std::error_code fault;
  const fs::recursive_directory_iterator entries(folder, fault);
  if (fault) throw Error(Category::io_error, fault.message(), {}, folder.string());
  for (const auto& entry : entries) {
    const fs::path& file = entry.path();
    if (is_program(file) && (pass.empty() || file.parent_path().filename() == pass)) {
      files.push_back(file);
    }
  }
  if (files.empty()) {
    throw Error(Category::io_error, "found no case" + (pass.empty() ? "" : " of " + pass), {},
                folder.string());
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const fs::path& file : files) cases.push_back(read_case(file));
  return cases;
}

void write_wording(const Case& written) {
  const fs::path expectation = beside(written.file, ".expect.json");
  Json json = Json::parse(read_file(expectation));
  switch (written.expect) {
    case Expect::rewritten:
      std::ofstream(beside(written.file, ".out.mlir"), std::ios::binary) << written.rewritten;
      return;
    case Expect::unchanged:
      json["explain"] = written.explain;
      break;
    case Expect::error:
      json["message"] = written.message;
      break;
  }
  std::ofstream(expectation, std::ios::binary) << json.dump(2) << '\n';
}

}  // namespace mulgrad::matcher
