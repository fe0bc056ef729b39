// The pass manager: runs passes over one artifact and holds each to its contract.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/rewrite/pass.h"

namespace mulgrad {

// A node of the pipeline's program that a pass replaced or removed, by what numerics, and the
// largest work factor of the regions that replaced it.
struct TouchedNode {
  Origin node = kNoOrigin;
  Numerics numerics;
  std::int64_t work_factor = 1;

  bool operator==(const TouchedNode&) const = default;
};

struct PassReport {
  std::string name;
  std::int64_t position = 0;  // zero-based, within the list
  bool changed = false;
  double seconds = 0;
  std::vector<Region> regions;  // indices refer to this pass's own input and output
  // Those that a region replaces a descendant of, or that left their last descendant; ascending.
  std::vector<TouchedNode> touched;
  std::vector<Declined> declined;  // by nodes of the pipeline's program; those made for none go
};

struct PipelineResult {
  Program program;
  std::vector<PassReport> passes;
  Numerics numerics;  // the union over the passes that changed the program
};

// Runs `passes` in order over the artifact in `slot`. The nodes of `program` become the origins
// that the result and the regions refer to.
//
// Throws expansion_contract_violation, with the pass, its position and the slot as the place:
// before anything runs, for a pass that does not accept the slot or whose numerics are not in
// `allowed`; while running, and then no later pass runs, when a pass
// - finds a program that violates what it needs, or returns one that violates what it leaves;
// - returns a program that does not verify (cause nested);
// - changes the interface: inputs, outputs, captures and seeds by order, role, name and type;
//   of captures the order is free, since each is linked
//   by its name;
// - detaches a seed that the outputs depended on, leaves a gradient that read a seed without any
//   (a fill of zeros is right), or has an output read an input in place of another one;
// - says that it changed nothing and did, or the other way round, or reports a region that lies
//   outside of its programs or whose numerics it has not declared;
// - throws anything but an Error (cause nested; std::rethrow_if_nested gets it back).
// An Error that a pass throws goes through unchanged.
PipelineResult run_passes(const Program& program, Slot slot, std::span<const Pass> passes,
                          const Numerics& allowed = Numerics::everything());

}  // namespace mulgrad
