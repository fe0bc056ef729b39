#include "backends/cpu/session.h"

#include <utility>

#include "backends/cpu/planner.h"

namespace mulgrad {
namespace {

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

Bindings infer_bindings(std::span<const DeclaredInput> declared, std::span<const Tensor> values) {
  if (values.size() != declared.size()) {
    throw Error(Category::invalid_argument, "found " + std::to_string(values.size()) +
                                                " inputs, expected " +
                                                std::to_string(declared.size()));
  }
  const auto mismatch = [&](std::size_t i, Category category) {
    throw Error(category,
                "found a tensor of type " + values[i].type().to_string() + ", expected " +
                    declared[i].type.to_string(),
                declared[i].name);
  };
  Bindings bindings;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Type& type = declared[i].type;
    if (values[i].dtype() != type.dtype) mismatch(i, Category::dtype_mismatch);
    if (values[i].rank() != type.rank()) mismatch(i, Category::shape_mismatch);
    for (std::int64_t axis = 0; axis < type.rank(); ++axis) {
      const Dim& dim = type.shape[axis];
      const std::int64_t size = values[i].sizes()[static_cast<std::size_t>(axis)];
      if (dim.symbols().size() == 1 && size % dim.coefficient() == 0) {
        bindings.emplace(dim.symbols()[0], size / dim.coefficient());
      }
    }
  }
  // A symbol got its number from one size; all the others must agree.
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Shape bound = declared[i].type.shape.bind(bindings);
    if (bound == values[i].type().shape) continue;
    if (!bound.is_static()) mismatch(i, Category::unresolved_symbolic_shape);
    const bool is_symbolic = !declared[i].type.shape.is_static();
    mismatch(i, is_symbolic ? Category::symbolic_shape_mismatch : Category::shape_mismatch);
  }
  return bindings;
}

CpuProgram::CpuProgram(const Program& program, const CpuOptions& options)
    : program_(program),
      plan_(cpu::make_plan(program, cpu::PlanTask::plain(program),
                           options.pool ? options.pool : cpu::make_pool(options.threads))) {}

std::vector<Tensor> CpuProgram::run(std::span<const Tensor> inputs) {
  if (inputs.size() != program_.inputs().size()) {
    throw Error(Category::invalid_argument, "found " + std::to_string(inputs.size()) +
                                                " inputs, expected " +
                                                std::to_string(program_.inputs().size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(program_, static_cast<std::int64_t>(i), inputs[i]);
    plan_.bind(i, inputs[i].bytes().data());
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

CpuFunction::CpuFunction(Program program, Target target, std::vector<Pass> passes,
                         const CpuOptions& options)
    : program_(std::move(program)),
      target_(std::move(target)),
      passes_(std::move(passes)),
      pool_(options.pool ? options.pool : cpu::make_pool(options.threads)) {
  for (const Input& input : program_.inputs()) declared_.push_back({input.name, input.type});
}

std::vector<Tensor> CpuFunction::run(std::span<const Tensor> inputs) {
  return compiled(infer_bindings(declared_, inputs)).run(inputs);
}

CpuProgram& CpuFunction::compiled(const Bindings& bindings) {
  const auto found = cache_.find(bindings);
  if (found != cache_.end()) return found->second;
  Artifact artifact = Artifact::untouched(program_.name(), mulgrad::bind(program_, bindings));
  PipelineResult rewritten = run_passes(artifact.source, Slot::forward, passes_);
  artifact.program = std::move(rewritten.program);
  const CoverageArtifact covered{std::move(artifact), std::move(rewritten.passes)};
  throw_if_refused(coverage(std::span(&covered, 1), target_).unsupported);
  return cache_.emplace(bindings, CpuProgram(covered.artifact.program, {.pool = pool_}))
      .first->second;
}

}  // namespace mulgrad
