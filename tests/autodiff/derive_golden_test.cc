// Goldens of derivative programs: tests/goldens/derive/<claim>.mlir holds a program, the forward
// program with its captures, and the derivative program, with "// -----" between them. All float
// outputs are derived with respect to all float inputs. With MULGRAD_UPDATE_GOLDENS set in the
// environment the last two are written anew; read the difference before you commit it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "autodiff/derive.h"
#include "core/text.h"
#include "tests/support/golden.h"

namespace mulgrad::testing {
namespace {

const std::string kSeparator = "// -----\n";

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
    std::ifstream file(entry.path());
    std::ostringstream content;
    content << file.rdbuf();
    const std::string source = content.str().substr(0, content.str().find(kSeparator));
    EXPECT_TRUE(matches_golden(derive_text(source), "derive/" + entry.path().filename().string()));
    ++files;
  }
  EXPECT_GE(files, 25);
}

}  // namespace
}  // namespace mulgrad::testing
