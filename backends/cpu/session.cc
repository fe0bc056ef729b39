#include "backends/cpu/session.h"

#include <cstring>
#include <utility>

#include "backends/cpu/registry.h"
#include "lowering/walk.h"

namespace mulgrad {
namespace {

Plan plan_of(const Program& program) {
  const std::vector<std::string> unbound = symbols(program);
  if (!unbound.empty()) {
    throw Error(Category::unresolved_symbolic_shape,
                "found the symbol " + unbound[0] + ", expected a bound program");
  }
  PlanBuilder builder;
  const HandlerRegistry<CpuValue> registry = make_cpu_registry(builder);
  const Lowered<CpuValue> lowered = lower(Artifact::untouched(program.name(), program), registry,
                                          [&](const InputContext& context) -> CpuValue {
                                            return {builder.input(bytes_of(context.input().type))};
                                          });
  for (std::size_t i = 0; i < lowered.outputs.size(); ++i) builder.output(lowered.output(i).buffer);
  return builder.finish();
}

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  INTERNAL_CHECK(from.size() == to.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

// Throws where `value` is not of the type of the input.
void check_input(const Program& program, std::int64_t index, const Tensor& value) {
  const Type& expected = program.inputs()[static_cast<std::size_t>(index)].type;
  const Type found = value.type();
  if (found == expected) return;
  throw Error(found.dtype == expected.dtype ? Category::shape_mismatch : Category::dtype_mismatch,
              "found a tensor of type " + found.to_string() + ", expected " + expected.to_string(),
              program.describe(ValueId::input(index)));
}

}  // namespace

CpuProgram::CpuProgram(const Program& program) : program_(program), plan_(plan_of(program)) {}

std::vector<Tensor> CpuProgram::run(std::span<const Tensor> inputs) {
  if (inputs.size() != program_.inputs().size()) {
    throw Error(Category::invalid_argument, "found " + std::to_string(inputs.size()) +
                                                " inputs, expected " +
                                                std::to_string(program_.inputs().size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(program_, static_cast<std::int64_t>(i), inputs[i]);
    copy_bytes(inputs[i].bytes(), plan_.input(i));
  }
  plan_.run();
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
    const Type& type = program_.type(program_.outputs()[i].value);
    results.emplace_back(type.dtype, type.shape.sizes());
    copy_bytes(plan_.output(i), results.back().bytes());
  }
  return results;
}

}  // namespace mulgrad
