// What the subcommands of `mulgrad` do, away from flags and streams.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rewrite/pass.h"
#include "core/type.h"
#include "lowering/target.h"

namespace mulgrad::command {

// Where a subcommand leaves what it has to say. Nothing of `output` is shown unless the subcommand
// returns; `notes` go to standard error even where it throws.
struct Result {
  std::string output;
  std::string notes;
  int exit_code = 0;
};

inline constexpr int kInputFault = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNotCovered = 3;

// A program in native text form, and the sizes of its symbols; none leaves them symbolic.
struct Source {
  std::string file;  // "-" is standard input
  Bindings bindings;
};

enum class Explain : std::uint8_t { no, yes };
enum class GradForm : std::uint8_t { joined, split };
enum class CoverageOf : std::uint8_t { program, program_and_derivative };
enum class Format : std::uint8_t { table, json };

// All of these throw Error located at the file, or at a place in it: io_error where it cannot be
// read, what parse() and bind() throw, and what is named below.

void print(const Source& source, Result& result);

// Runs the passes in order and verifies the program after each. Explanations go to the notes;
// they number nodes as the file does, from which a node that a pass emitted has the number of what
// it replaces. Throws what a pass throws.
void opt(const Source& source, const std::vector<Pass>& passes, Explain explain, Result& result);

// The derivative of all float outputs with respect to the inputs at `wrt` (empty: all float ones).
// Joined: the inputs of the program, then the cotangent ct<k> of each float output k; its outputs,
// then the gradient grad_arg<i> for each i of `wrt`. Throws invalid_argument for an index out of
// range, and what derive() throws.
void grad(const Source& source, const std::vector<std::int64_t>& wrt, GradForm form,
          Result& result);

// What the default pipeline makes of the program, and with it of its derivative with respect to all
// float inputs (zeros for those that no output depends on). The exit code is kNotCovered when
// something is unsupported. Throws unresolved_symbolic_shape for a program that is not bound.
void coverage(const Source& source, const Target& target, CoverageOf what, Format format,
              Result& result);

}  // namespace mulgrad::command
