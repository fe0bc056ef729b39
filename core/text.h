// The native text form of programs; core/README.md holds its grammar.
#pragma once

#include <string>
#include <string_view>

#include "core/custom.h"
#include "core/program.h"

namespace mulgrad {

// The whole module, ending in a newline. parse(print(p)) == p for every program, as long as the
// parser is given the definitions of its custom ops.
std::string print(const Program& program);

struct ParseOptions {
  std::string file = "<input>";  // named in the location of errors
  CustomRegistry customs;        // where @name of a custom_call is looked up
};

// Reads one module. Nothing is folded: a node per line of the text. Throws Error located as
// "file:line:col" (columns count bytes from 1): parse_error where the text breaks the grammar, and
// the categories that core/README.md lists where it contradicts itself or the op constraints.
Program parse(std::string_view text, const ParseOptions& options = {});

}  // namespace mulgrad
