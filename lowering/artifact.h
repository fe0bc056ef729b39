// Artifact: a program on its way to a device, with the name that its nodes are reported under.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"

namespace mulgrad {

struct Artifact {
  std::string name;  // "forward", "derivative", "update.64x10xf32", "step_scalars"
  Program source;    // before any pass: its numbering names the nodes
  Program program;   // after the passes, with origins into `source`

  // A program that no pass has touched.
  static Artifact untouched(std::string name, const Program& program);
  // "forward:%7 mulgrad.mean": the node of `source` that a node of `program` came from; where a
  // pass emitted another op for it, "forward:%7 mulgrad.mean (as stablehlo.dot_general)".
  std::string label(std::int64_t node) const;
  // "forward:%arg0 "x"".
  std::string input_label(std::int64_t input) const;
};

// A node that cannot be lowered, and why.
struct Refusal {
  std::string label;
  std::string reason;
};

// Throws unsupported_operator listing every refusal, one a line; nothing when there is none.
void throw_if_refused(std::span<const Refusal> refusals);

}  // namespace mulgrad
