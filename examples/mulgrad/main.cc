// mulgrad: the library on files. `mulgrad --help` tells what it does.
//
// Exit codes: 0 fine; 1 the program, or what is asked of it, is at fault, with one line
// "file:line:col: category: text" on standard error; 2 the command line alone is wrong; 3 coverage
// found something that the target does not support. Standard output is written only where all of
// the work has succeeded.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "examples/mulgrad/commands.h"
#include "lowering/passes.h"

using namespace mulgrad;
using namespace mulgrad::command;

namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> bindings;
  std::vector<std::string> passes;
  std::string target;
  std::vector<std::int64_t> wrt;
  bool list = false;
  bool explain = false;
  bool split = false;
  bool with_gradient = false;
  bool json = false;
};

Bindings parse_bindings(const std::vector<std::string>& texts) {
  Bindings bindings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const char* const end = text.data() + text.size();
    std::int64_t size = 0;
    const bool read = equals != std::string::npos && equals > 0 &&
                      std::from_chars(text.data() + equals + 1, end, size).ptr == end &&
                      equals + 1 < text.size();
    if (!read) throw CLI::ValidationError("--bind", "found '" + text + "', expected NAME=SIZE");
    if (!bindings.emplace(text.substr(0, equals), size).second) {
      throw CLI::ValidationError("--bind", "found '" + text.substr(0, equals) + "' twice");
    }
  }
  return bindings;
}

Target parse_target(const std::string& name) {
  std::string known;
  for (const Target& target : built_in_targets()) {
    if (target.name() == name) return target;
    known += (known.empty() ? "" : ", ") + target.name();
  }
  if (name.ends_with(".json")) return Target::from_json_file(name);
  throw CLI::ValidationError("--target", "found '" + name + "', expected one of " + known +
                                             ", or the path of a .json file");
}

std::vector<Pass> parse_passes(const std::vector<std::string>& names, const Target& target) {
  std::vector<Pass> passes;
  for (const std::string& name : names) {
    const std::optional<Pass> pass = pass_by_name(name, target);
    if (!pass) {
      throw CLI::ValidationError(
          "--passes", "found '" + name + "', expected passes that `mulgrad opt --list` names");
    }
    passes.push_back(*pass);
  }
  return passes;
}

std::string list_of_passes(const Target& target) {
  const std::vector<NamedPass> passes = all_passes(target);
  std::size_t width = 0;
  for (const NamedPass& named : passes) width = std::max(width, named.pass.name.size());
  std::string text;
  for (const NamedPass& named : passes) {
    text += named.pass.name + std::string(width - named.pass.name.size() + 2, ' ') +
            named.description + "\n";
  }
  return text;
}

void run_opt(const Arguments& given, Result& result) {
  const Target target = parse_target(given.target);
  if (given.list) {
    result.output = list_of_passes(target);
    return;
  }
  if (given.file.empty()) throw CLI::RequiredError("FILE");
  if (given.passes.empty()) throw CLI::RequiredError("--passes");
  opt({given.file, parse_bindings(given.bindings)}, parse_passes(given.passes, target),
      given.explain ? Explain::yes : Explain::no, result);
}

// The flags, and what is done once all of them have been read.
void declare(CLI::App& app, Arguments& given, Result& result) {
  app.require_subcommand(0, 1);  // so that an unknown one is named
  app.callback([&app] {
    if (app.get_subcommands().empty()) throw CLI::RequiredError("a command");
  });
  const auto source = [&] { return Source{given.file, parse_bindings(given.bindings)}; };
  const auto file_of = [&](CLI::App* command) {
    return command->add_option("FILE", given.file, "a program in native text form; - is stdin");
  };
  const auto bindings_of = [&](CLI::App* command) {
    command->add_option("--bind", given.bindings, "sizes of symbols, as in --bind=B=32,N=4")
        ->delimiter(',')
        ->allow_extra_args(false);
  };

  CLI::App* print_command = app.add_subcommand("print", "read a program and print it");
  file_of(print_command)->required();
  print_command->callback([&, source] { print(source(), result); });

  CLI::App* opt_command =
      app.add_subcommand("opt", "run passes on a program, in the order given, and print it");
  file_of(opt_command);
  bindings_of(opt_command);
  opt_command->add_option("--passes", given.passes, "passes to run: --passes=a,b")
      ->delimiter(',')
      ->allow_extra_args(false);
  opt_command
      ->add_option("--target", given.target,
                   "what the passes bring the program to, as for coverage")
      ->default_val("matmul_only");
  opt_command->add_flag("--explain", given.explain,
                        "tell on standard error, of each candidate, what becomes of it or why not");
  opt_command->add_flag("--list", given.list, "name all passes and do nothing else");
  opt_command->callback([&] { run_opt(given, result); });

  CLI::App* grad_command =
      app.add_subcommand("grad", "print a program that computes the outputs and their gradients");
  file_of(grad_command)->required();
  bindings_of(grad_command);
  grad_command
      ->add_option("--wrt", given.wrt, "indices of the inputs, as in --wrt=0,2; all float ones")
      ->delimiter(',')
      ->allow_extra_args(false);
  grad_command->add_flag("--split", given.split,
                         "print the program with its captures, then the derivative program");
  grad_command->callback([&, source] {
    grad(source(), given.wrt, given.split ? GradForm::split : GradForm::joined, result);
  });

  CLI::App* coverage_command = app.add_subcommand(
      "coverage", "tell what a target can do of a program, and what it cannot; exit code 3 if any");
  file_of(coverage_command)->required();
  bindings_of(coverage_command);
  coverage_command
      ->add_option(
          "--target", given.target,
          "matmul_only, matmul_move, matmul_batched, cpu or a .json file that describes one")
      ->required();
  coverage_command->add_flag("--grad", given.with_gradient,
                             "of its derivative with respect to all float inputs as well");
  coverage_command->add_flag("--json", given.json, "as one JSON object");
  coverage_command->callback([&, source] {
    coverage(source(), parse_target(given.target),
             given.with_gradient ? CoverageOf::program_and_derivative : CoverageOf::program,
             given.json ? Format::json : Format::table, result);
  });
}

int write(const Result& result) {
  const bool written =
      std::fwrite(result.output.data(), 1, result.output.size(), stdout) == result.output.size() &&
      std::fflush(stdout) == 0;
  if (written) return result.exit_code;
  std::fputs("<stdout>: io_error: cannot write\n", stderr);
  return kInputFault;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Programs as text: print, rewrite, derive them, and see what a target covers.",
               "mulgrad");
  Arguments given;
  Result result;
  const auto fail = [&](const std::exception& error) {
    std::fprintf(stderr, "%s%s\n", result.notes.c_str(), error.what());
    return kInputFault;
  };
  try {
    declare(app, given, result);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const std::exception& error) {
    return fail(error);
  }
  std::fputs(result.notes.c_str(), stderr);
  return write(result);
}
