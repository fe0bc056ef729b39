#include "examples/custom_backend/training.h"

#include <utility>

#include "core/interpreter.h"
#include "core/rewrite/pass_manager.h"
#include "lowering/pipeline.h"
#include "lowering/target.h"

namespace mulgrad::examples {
namespace {

// Appends to a list in C.
void append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

std::string parameter_name(const Program& program, std::size_t input) {
  return "in" + std::to_string(input) + "_" + c_name(program.inputs()[input].name);
}

// The C function that makes a step out of those of its artifacts. Values that pass from one to the
// next lie in static arrays.
std::string c_step_function(const std::string& name, const TrainingStep& step, const CUnit& unit,
                            const Program& program) {
  std::string declarations;
  std::string calls;
  const auto local = [&](const Type& type, const std::string& array) {
    declarations += "  static " + c_array(type, array) + ";\n";
    return array;
  };
  const auto call = [&](const Artifact& artifact, const std::string& arguments) {
    calls += "  " + unit.function(artifact) + "(" + arguments + ");\n";
  };
  const auto input = [&](const std::string& of) {
    const std::int64_t index = program.find_input(of);
    INTERNAL_CHECK(index >= 0);
    return parameter_name(program, static_cast<std::size_t>(index));
  };

  std::string scalars;
  if (const Artifact* artifact = step.step_scalars()) {
    for (const Output& output : artifact->program.outputs()) {
      append(scalars, local(artifact->program.type(output.value), "scalar_" + c_name(output.name)));
    }
    call(*artifact, input("count") + ", " + scalars);
  }

  const Program& forward = step.forward().program;
  std::string arguments;
  for (const Input& in : forward.inputs()) append(arguments, input(in.name));
  for (const Output& output : forward.outputs()) {
    append(arguments, output.role == OutputRole::output
                          ? "loss"
                          : local(forward.type(output.value), "capture_" + c_name(output.name)));
  }
  call(step.forward(), arguments);

  const Program& derivative = step.derivative().program;
  arguments.clear();
  for (const Input& in : derivative.inputs()) {
    if (in.role == InputRole::capture) {
      append(arguments, "capture_" + c_name(in.name));
      continue;
    }
    append(arguments, local(in.type, "seed"));
    calls += "  seed[0] = 1;\n";
  }
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    append(arguments,
           local(derivative.type(derivative.outputs()[i].value), "gradient" + std::to_string(i)));
  }
  call(step.derivative(), arguments);

  if (const Artifact* artifact = step.clip()) {
    arguments.clear();
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      append(arguments, "gradient" + std::to_string(i));
    }
    const Output& output = artifact->program.outputs()[0];
    append(scalars, local(artifact->program.type(output.value), "clip"));
    call(*artifact, arguments + ", clip");
  }

  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    const std::string& parameter = step.parameters[i];
    std::string results = input(parameter);
    arguments = input(parameter) + ", gradient" + std::to_string(i);
    for (const std::string& state : step.state) {
      append(arguments, input(parameter + "." + state));
      append(results, input(parameter + "." + state));
    }
    if (!scalars.empty()) append(arguments, scalars);
    append(arguments, results);
    call(step.update(i), arguments);
  }

  std::string parameters;
  for (std::size_t i = 0; i < program.inputs().size(); ++i) {
    const Input& in = program.inputs()[i];
    const bool replaced = program.find_output("new." + in.name) >= 0;
    parameters += std::string(replaced ? "\n    " : "\n    const ") +
                  c_array(in.type, parameter_name(program, i)) + ",";
  }
  const Type& loss = program.type(program.outputs()[0].value);
  return "\nvoid " + name + "(" + parameters + "\n    " + c_array(loss, "loss") + ") {\n" +
         declarations + calls + "}\n" + c_entry(name, program.inputs().size() + 1);
}

}  // namespace

CTrainingStep::CTrainingStep(std::string name, const TrainingSpec& spec, const Bindings& bindings)
    : name_(std::move(name)),
      unit_(name_),
      compiled_(compile_training_step<CValue>(spec, bindings, Target::matmul_only(),
                                              unit_.handlers(), unit_.inputs(),
                                              Passes::for_target(Target::matmul_only()))),
      program_(step_program(compiled_.step)) {
  const Type& loss = program_.type(program_.outputs()[0].value);
  if (loss.shape.elements() != Dim(1)) {
    throw Error(Category::invalid_loss_output,
                "found a loss of type " + loss.to_string() + ", expected one element");
  }
  for (std::size_t i = 0; i < compiled_.lowered.size(); ++i) {
    text_ += unit_.finish(compiled_.step.artifacts[i].artifact, compiled_.lowered[i]);
  }
  text_ += c_step_function(name_, compiled_.step, unit_, program_);
}

double CTrainingStep::run(const CLibrary& library, std::span<Tensor> values) const {
  const Type& type = program_.type(program_.outputs()[0].value);
  Tensor loss(type.dtype, type.shape.sizes());
  std::vector<void*> arguments;
  for (Tensor& value : values) arguments.push_back(value.bytes().data());
  arguments.push_back(loss.bytes().data());
  library.call(name_ + "_run", arguments);
  return loss.to_doubles()[0];
}

double CTrainingStep::interpret(std::span<Tensor> values) const {
  std::vector<Tensor> results = mulgrad::interpret(program_, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t output = program_.find_output("new." + program_.inputs()[i].name);
    if (output >= 0) values[i] = std::move(results[static_cast<std::size_t>(output)]);
  }
  return results[0].to_doubles()[0];
}

std::string c_program(const std::string& name, const Program& program) {
  Artifact artifact = Artifact::untouched("forward", program);
  artifact.program = run_passes(artifact.source, Slot::forward,
                                default_pipeline(Target::matmul_only(), Slot::forward))
                         .program;
  CUnit unit(name);
  const Lowered<CValue> lowered = lower(artifact, unit.handlers(), unit.inputs());
  const std::size_t count = program.inputs().size() + program.outputs().size();
  return unit.finish(artifact, lowered) + c_entry(unit.function(artifact), count);
}

std::vector<Tensor> zeros(const Program& program) {
  std::vector<Tensor> result;
  for (const Input& input : program.inputs()) {
    result.emplace_back(input.type.dtype, input.type.shape.sizes());
  }
  return result;
}

}  // namespace mulgrad::examples
