// Coverage: before anything runs, what a target can and cannot do of all artifacts of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/rewrite/pass_manager.h"
#include "lowering/artifact.h"
#include "lowering/target.h"

namespace mulgrad {

struct CoverageArtifact {
  Artifact artifact;
  std::vector<PassReport> passes;  // as run_passes() reports them for the artifact
  std::int64_t multiplicity = 1;   // a shared update counts once per parameter
};

enum class NodeFate : std::uint8_t { native, rewritten, unsupported };

// A line of the report: source nodes of one artifact and op kind that met the same fate.
struct CoverageRow {
  std::string artifact;
  OpKind kind;
  NodeFate fate;
  std::int64_t count;
  std::vector<std::string> rules;  // rewritten: the passes in the order in which they applied
  Numerics numerics;               // rewritten: the union over the rules
  std::int64_t work_factor;        // rewritten: the largest of the rules' regions, mostly 1
  std::string reason;              // unsupported: of the target, and of the pass that left it
};

struct EmittedRow {
  std::string artifact;
  OpKind kind;
  std::int64_t count;
};

// Work of one run of all artifacts, each counted `multiplicity` times, by these formulas over the
// reachable nodes:
//   flops           dot_general: 2 * result elements * contracted elements; elementwise but
//                   convert and stop_gradient: result elements; reduce: operand elements; mean:
//                   operand plus result elements; everything else, custom ops included: 0
//   bytes           operands read (once per operand) plus results written
//   constant_bytes  results of fill and constant
struct Work {
  double flops = 0;  // beyond 2^63 for large products
  double bytes = 0;
  double constant_bytes = 0;
};
Work work(const Program& program);  // throws unresolved_symbolic_shape for a program not bound

// Of one artifact, counted `multiplicity` times.
struct WorkRow {
  std::string artifact;
  Work before;
  Work after;
};

struct Coverage {
  std::string target;
  std::vector<CoverageRow> rows;     // by artifact, then in the order of the op list
  std::vector<EmittedRow> emitted;   // nodes of the programs after the passes, likewise
  std::vector<Refusal> unsupported;  // every one, a shared artifact's once
  std::vector<WorkRow> work;         // by artifact
  Work before;                       // the sums
  Work after;

  std::int64_t count(NodeFate fate) const;
  // An aligned table.
  std::string print() const;
  // The same as one JSON object, indented, ending in a newline:
  //   target       the name
  //   nodes        {native, rewritten, unsupported}: the counts
  //   rows         [{artifact, op, fate, nodes}]; rewritten: also rules [names], numerics
  //                {sign_of_zero, finite_only, reassociates, needs_exact_product, ulp} and
  //                work_factor; unsupported: also reason
  //   emitted      [{artifact, op, nodes}]
  //   work         {before, after, artifacts: [{artifact, before, after}]}, where before and after
  //                are {flops, bytes, constant_bytes}
  //   unsupported  [{node, reason}]
  std::string json() const;
};

// Whether whatever will run the lowered program has a handler for the op.
using HasHandler = std::function<bool(const Op&)>;

// A source node that an output or capture depends on is
//   unsupported  when a reachable node of the program after the passes that descends from it is
//                refused by the target or has no handler;
//   rewritten    when a pass replaced a node that descends from it, or left none;
//   native       otherwise.
// An input that leaves as an output and whose dtype cannot cross the target's interface is
// unsupported as well; it is named by its input. Throws unresolved_symbolic_shape for an artifact
// that is not bound.
Coverage coverage(std::span<const CoverageArtifact> artifacts, const Target& target,
                  const HasHandler& has_handler = {});

}  // namespace mulgrad
