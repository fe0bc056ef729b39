// custom_backend: how to bring up a backend of your own. This one is a C compiler.
//
// A backend is a type for its values (emitter.h: CValue, the name of a C array) and a handler per
// op that its target has (emitter.cc: each writes a loop). The library does the rest: it traces the
// loss, derives it, rewrites all that the target `matmul_only` lacks into products and elementwise
// ops, checks before the first handler is called that nothing is left over, and hands every node to
// its handler. training.cc strings the lowered artifacts together into one C function per step and
// batch size; library.cc compiles and loads the file.
//
// Then the backend is put to the test: every op on awkward values, an epoch of the digits, tensor
// by tensor, against the reference interpreter, and exclusive or, learned by the C code alone.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "examples/custom_backend/check_ops.h"
#include "examples/custom_backend/emitter.h"
#include "examples/custom_backend/library.h"
#include "examples/custom_backend/tasks.h"

namespace mulgrad::examples {
namespace {

constexpr double kDigitsTolerance = 1e-5;
constexpr double kXorLoss = 0.01;

struct Options {
  std::string out;
  std::string compiler = "cc";
  std::uint64_t seed = 0;
};

int run(const Options& options) {
  const DigitsTask digits(options.seed);
  const XorTask exclusive_or(options.seed);
  std::printf("%s\n", digits.step().step().coverage.print().c_str());

  const TemporaryDirectory directory;
  const std::filesystem::path source = options.out.empty() ? directory.path() / "custom_backend.c"
                                                           : std::filesystem::path(options.out);
  write_file(source, c_prelude() + c_check_ops() + digits.c_text() + exclusive_or.c_text());
  const std::filesystem::path shared_object = directory.path() / "custom_backend.so";
  compile_c(options.compiler, source, shared_object);
  const CLibrary library(shared_object);

  const std::string faults = check_ops(library);
  std::printf("every op, against the interpreter: %s\n", faults.empty() ? "agrees" : "DIFFERS");
  std::printf("%s", faults.c_str());
  std::printf("an epoch of digits, largest difference over largest value:\n");
  const double worst = digits.compare(library);
  std::printf("exclusive or:\n");
  const double loss = exclusive_or.learn(library);

  const bool agrees = worst <= kDigitsTolerance;
  const bool learned = loss <= kXorLoss;
  std::printf("custom_backend: digits %s (worst %.1e), xor %s (loss %.4f)\n",
              agrees ? "agree" : "DISAGREE", worst, learned ? "learned" : "NOT LEARNED", loss);
  return faults.empty() && agrees && learned ? 0 : 1;
}

}  // namespace
}  // namespace mulgrad::examples

int main(int argc, char** argv) {
  mulgrad::examples::Options options;
  CLI::App app("Compiles training steps to C, runs them, and compares with the interpreter.");
  app.add_option("--out", options.out, "where to write the C file (default: nowhere that stays)");
  app.add_option("--cc", options.compiler, "the C compiler")->capture_default_str();
  app.add_option("--seed", options.seed, "of the shuffle and the parameters")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return mulgrad::examples::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "custom_backend: %s\n", error.what());
    return 1;
  }
}
