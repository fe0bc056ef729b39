// Goldens of derivative programs: tests/goldens/derive/<claim>.mlir holds a program, the forward
// program with its captures, and the derivative program, with "// -----" between them. All float
// outputs are derived with respect to all float inputs. With MULGRAD_REWRITE_GOLDENS set in the
// environment the last two are written anew; read the difference before you commit it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autodiff/derive.h"
#include "core/text.h"

namespace mulgrad {
namespace {

const std::string kSeparator = "// -----\n";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string derive_text(const std::string& text) {
  const Program program = parse(text);
  std::vector<std::int64_t> outputs;
  for (std::int64_t i = 0; i < std::ssize(program.outputs()); ++i) outputs.push_back(i);
  std::vector<ValueId> wrt;
  for (std::int64_t i = 0; i < std::ssize(program.inputs()); ++i) {
    if (is_float(program.type(ValueId::input(i)).dtype)) wrt.push_back(ValueId::input(i));
  }
  const Derivative derivative = derive(program, outputs, wrt);
  for (const Program& result : {derivative.forward, derivative.derivative}) {
    EXPECT_EQ(parse(print(result)), result);
  }
  return text + kSeparator + print(derivative.forward) + kSeparator + print(derivative.derivative);
}

TEST(DeriveGolden, EveryFile_HoldsWhatDeriveEmits) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(MULGRAD_SOURCE_DIR "/tests/goldens/derive")) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string expected = read_file(entry.path());
    const std::string found = derive_text(expected.substr(0, expected.find(kSeparator)));
    if (std::getenv("MULGRAD_REWRITE_GOLDENS") != nullptr) {
      std::ofstream(entry.path()) << found;
    } else {
      EXPECT_EQ(found, expected);
    }
    ++files;
  }
  EXPECT_GE(files, 24);
}

}  // namespace
}  // namespace mulgrad
