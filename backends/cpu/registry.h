// The CPU backend's handlers: each appends the kernel call of its node to a plan.
#pragma once

#include <memory>

#include "backends/cpu/threads.h"
#include "core/program.h"
#include "lowering/plan.h"
#include "lowering/registry.h"

namespace mulgrad {

// Where the value of a node will lie.
struct CpuValue {
  Buffer buffer;
};

// A handler for every op and dtype. Where the backend has no kernel, the interpreter runs the node
// and the plan counts a fallback: Custom ops, and arithmetic in other dtypes than f32, f64, i32,
// i64 and i1; products in other dtypes than f32 and f64. Fill, constant and iota are computed when
// the plan is made; reshape, stop_gradient and convert to the same dtype cost nothing. `plan` must
// outlive the registry. Kernels run their parts on `pool`.
HandlerRegistry<CpuValue> make_cpu_registry(PlanBuilder& plan,
                                            std::shared_ptr<cpu::ThreadPool> pool);

// Bytes of a value of a static type.
std::size_t bytes_of(const Type& type);

}  // namespace mulgrad
