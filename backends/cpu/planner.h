// The planner: a bound program as few kernel calls.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/threads.h"
#include "core/program.h"
#include "lowering/plan.h"

namespace mulgrad::cpu {

// What a plan is made for, besides its program.
struct PlanTask {
  // Per input of the program, the memory that it lies in and that commits write. The others are
  // inputs of the plan, in order, bound by Plan::bind.
  std::vector<std::optional<std::span<std::byte>>> memory;
  // Per output, the input whose memory takes it at the end of a run. The others are outputs of the
  // plan, in order.
  std::vector<std::optional<std::size_t>> commits;
  // The output that the plan's first part computes.
  std::optional<std::size_t> checkpoint;

  // Every input is bound and every output stays one.
  static PlanTask plain(const Program& program);
};

// The calls, in the order in which they run:
// - products, which read and write transposed matrices in place of transposing them, and add to a
//   parameter where it only changes by a multiple of a product (parameter - rate * gradient), or
//   have an epilogue (product.h): a bias, max(x, 0), and select(y > 0, x, 0), its derivative;
// - loops, of as many elementwise ops and reductions as can run in one (groups.h);
// - a kernel per node for the rest (registry.h).
// What writes a parameter or state runs behind everything that reads its old value, where that is
// possible; else it is copied. Throws unresolved_symbolic_shape for a program that is not bound.
Plan make_plan(const Program& program, const PlanTask& task,
               const std::shared_ptr<ThreadPool>& pool);

}  // namespace mulgrad::cpu
