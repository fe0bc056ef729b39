// Passes: a Program in, a Program and a report of what was replaced out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/rewrite/numerics.h"

namespace mulgrad {

// The three kinds of artifact that a training step has.
enum class Slot : std::uint8_t { forward, derivative, update };
std::string_view to_string(Slot slot);

// A place where a pass replaced nodes.
struct Region {
  std::string pass;
  std::vector<std::int64_t> source;   // nodes of the pass's input program, ascending; root last
  std::vector<std::int64_t> emitted;  // nodes of the pass's output program, ascending
  ValueId terminal;                   // of the output program: stands where the root stood
  Numerics numerics;
  Origin origin = kNoOrigin;  // of the root
  // How many times the arithmetic of the source is done: more than once where the emitted nodes
  // compute what is thrown away.
  std::int64_t work_factor = 1;
};

// A node that a pass is for and left as it was.
struct Declined {
  std::int64_t node;  // of the pass's input program
  std::string reason;
};

struct PassResult {
  Program program;
  std::vector<Region> regions;
  bool changed = false;                 // false exactly when `program` equals the input
  std::vector<Declined> declined = {};  // where there is more to say than that no rule exists
};

// A named condition on a program: what a pass needs or leaves. `violation` says what is wrong, with
// the node, or nothing where the condition holds.
struct Property {
  std::string name;
  std::function<std::optional<std::string>(const Program&)> violation;
};

struct Pass {
  std::string name;
  std::vector<Slot> accepts;
  Numerics numerics;  // the union over its rules
  std::function<PassResult(const Program&)> run;
  std::vector<Property> needs;
  std::vector<Property> leaves;
  // A line per candidate of the program: that it would be rewritten, or why not. Empty for a pass
  // that has nothing to explain.
  std::function<std::vector<std::string>(const Program&)> explain;
};

// "%7 divide": how explanations name a node, without the dialect.
std::string brief_name(const Program& program, ValueId node);

}  // namespace mulgrad
