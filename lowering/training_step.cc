#include "lowering/training_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "autodiff/link.h"
#include "lowering/pipeline.h"

namespace mulgrad {
namespace {

const Type kCount{DType::i64, {}};

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

[[noreturn]] void bad_declaration(const std::string& text) {
  throw Error(Category::invalid_training_declaration, text);
}

const Type* declared_type(const TrainingSpec& spec, const std::string& name) {
  for (const DeclaredInput& input : spec.inputs) {
    if (input.name == name) return &input.type;
  }
  return nullptr;
}

void check_declaration(const TrainingSpec& spec) {
  if (spec.inputs.empty()) bad_declaration("found no inputs, expected at least one");
  if (spec.parameters.empty()) bad_declaration("found no parameters, expected at least one");
  if (!spec.loss) bad_declaration("found no loss");
  if (!spec.update) bad_declaration("found no update");
  std::set<std::string> names;
  for (const DeclaredInput& input : spec.inputs) {
    if (!names.insert(input.name).second) {
      bad_declaration("the input " + quoted(input.name) + " is declared twice");
    }
  }
  std::set<std::string> parameters;
  for (const std::string& name : spec.parameters) {
    const Type* type = declared_type(spec, name);
    if (type == nullptr) bad_declaration("the parameter " + quoted(name) + " is no declared input");
    if (!type->shape.is_static()) {
      bad_declaration("the parameter " + quoted(name) + " has the symbolic type " +
                      type->to_string());
    }
    if (!parameters.insert(name).second) {
      bad_declaration("the parameter " + quoted(name) + " is listed twice");
    }
  }
  for (const std::string& name : spec.random_inputs) {
    const Type* type = declared_type(spec, name);
    if (type == nullptr)
      bad_declaration("the random input " + quoted(name) + " is no declared input");
    if (type->dtype != DType::f32) {
      bad_declaration("the random input " + quoted(name) + " has the type " + type->to_string() +
                      ", expected f32");
    }
    if (!parameters.insert(name).second) {
      bad_declaration("the random input " + quoted(name) + " is listed twice or a parameter");
    }
  }
  if (spec.clip_norm && !(*spec.clip_norm > 0 && std::isfinite(*spec.clip_norm))) {
    bad_declaration("found the clip_norm " + std::to_string(*spec.clip_norm) +
                    ", expected a finite one above 0");
  }
  // The names of the whole step's program.
  std::vector<std::string> further;
  for (const std::string& parameter : spec.parameters) {
    for (const std::string& state : spec.state) further.push_back(parameter + "." + state);
  }
  if (spec.step_scalars) {
    further.emplace_back("count");
  } else {
    for (const DeclaredInput& input : spec.optimizer_inputs) further.push_back(input.name);
  }
  for (const std::string& name : further) {
    if (!names.insert(name).second) {
      bad_declaration("the name " + quoted(name) + " stands for two inputs of the step");
    }
  }
}

void check_update_signature(const TrainingSpec& spec) {
  std::set<std::string> names{"parameter", "gradient"};
  if (spec.clip_norm) names.insert("clip");
  const auto check = [&](std::string_view what, const std::string& name) {
    if (names.insert(name).second) return;
    throw Error(Category::invalid_update_signature, "found the " + std::string(what) + " " +
                                                        quoted(name) +
                                                        ", a name that is taken in the update");
  };
  for (const std::string& name : spec.state) check("state", name);
  for (const DeclaredInput& input : spec.optimizer_inputs) check("optimizer input", input.name);
}

NamedVars declare(Tape& tape, std::span<const DeclaredInput> inputs, Category missing) {
  std::vector<NamedVar> vars;
  for (const DeclaredInput& input : inputs) {
    vars.push_back({input.name, tape.input(input.name, input.type)});
  }
  return {std::move(vars), missing};
}

Program trace_loss(const TrainingSpec& spec) {
  Tape tape("forward");
  const NamedVars inputs = declare(tape, spec.inputs, Category::invalid_loss_signature);
  const Var loss = spec.loss(tape, inputs);
  if (&loss.builder() != &tape.builder()) {
    throw Error(Category::invalid_loss_output, "the loss is no value of its own tape");
  }
  if (!is_float(loss.dtype())) {
    throw Error(Category::invalid_loss_output,
                "found a loss of type " + loss.type().to_string() + ", expected a float dtype");
  }
  tape.output("loss", loss);
  return tape.finish();
}

// "64x10xf32", "f32" for rank 0.
std::string type_name(const Type& type) {
  std::string text;
  for (const std::int64_t size : type.shape.sizes()) text += std::to_string(size) + "x";
  return text + std::string(to_string(type.dtype));
}

DType scalar_dtype(const TrainingSpec& spec) {
  return declared_type(spec, spec.parameters.front())->dtype;
}

// The factor c / max(norm, c), exactly 1 for a norm up to c. Squares are summed by products of a
// row with a column, which every target has, and at least in f32.
Program trace_clip(const TrainingSpec& spec) {
  const DType dtype = scalar_dtype(spec);
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto converted = [](Var x, DType to) { return x.dtype() == to ? x : convert(x, to); };
  Tape tape("clip");
  std::optional<Var> sum;
  for (const std::string& parameter : spec.parameters) {
    const Type& type = *declared_type(spec, parameter);
    const Var gradient = converted(tape.input("grad." + parameter, type), wide);
    const Dim elements = type.shape.elements();
    const Var row = reshape(gradient, {1, elements});
    const Var squares = matmul(row, reshape(gradient, {elements, 1}));
    sum = sum ? *sum + squares : squares;
  }
  const Var norm = sqrt(reshape(*sum, {}));
  tape.output("clip", converted(*spec.clip_norm / maximum(norm, *spec.clip_norm), dtype));
  return tape.finish();
}

Program trace_update(const TrainingSpec& spec, const std::string& parameter, const Type& type) {
  Tape tape("update." + type_name(type));
  const auto check = [&](const std::string& what, Var value) {
    if (&value.builder() != &tape.builder()) {
      throw Error(Category::invalid_update_output,
                  "the " + what + " of " + quoted(parameter) + " is no value of its own tape");
    }
    if (!(value.type() == type)) {
      throw Error(Category::invalid_update_output, "the " + what + " of " + quoted(parameter) +
                                                       ": found " + value.type().to_string() +
                                                       ", expected " + type.to_string());
    }
  };
  const Var value = tape.input("parameter", type);
  Var gradient = tape.input("gradient", type);
  std::vector<DeclaredInput> state;
  for (const std::string& name : spec.state) state.push_back({name, type});
  const NamedVars states = declare(tape, state, Category::invalid_update_signature);
  const NamedVars inputs = declare(tape, spec.optimizer_inputs, Category::invalid_update_signature);
  if (spec.clip_norm) gradient = gradient * tape.input("clip", {scalar_dtype(spec), {}});
  const Update update = spec.update({value, gradient, states, inputs});
  check("update", update.parameter);
  if (update.state.size() != spec.state.size()) {
    throw Error(Category::invalid_update_output, "the update of " + quoted(parameter) + " gives " +
                                                     std::to_string(update.state.size()) +
                                                     " states, expected " +
                                                     std::to_string(spec.state.size()));
  }
  tape.output("parameter", update.parameter);
  for (std::size_t i = 0; i < spec.state.size(); ++i) {
    check("state " + quoted(spec.state[i]), update.state[i]);
    tape.output(spec.state[i], update.state[i]);
  }
  return tape.finish();
}

Program trace_step_scalars(const TrainingSpec& spec) {
  const auto fail = [](const std::string& text) {
    throw Error(Category::invalid_update_signature, text);
  };
  Tape tape("step_scalars");
  const std::vector<NamedVar> scalars = spec.step_scalars(tape.input("count", kCount));
  for (const NamedVar& scalar : scalars) {
    const bool expected =
        std::ranges::any_of(spec.optimizer_inputs,
                            [&](const DeclaredInput& input) { return input.name == scalar.name; });
    if (!expected) fail("the step scalar " + quoted(scalar.name) + " is no optimizer input");
  }
  for (const DeclaredInput& input : spec.optimizer_inputs) {
    const auto scalar = std::ranges::find(scalars, input.name, &NamedVar::name);
    if (scalar == scalars.end()) {
      fail("the optimizer input " + quoted(input.name) + " is missing among the step scalars");
    }
    if (&scalar->value.builder() != &tape.builder()) {
      fail("the step scalar " + quoted(input.name) + " is no value of its own tape");
    }
    if (!(scalar->value.type() == input.type)) {
      fail("the step scalar " + quoted(input.name) + ": found " + scalar->value.type().to_string() +
           ", expected " + input.type.to_string());
    }
    tape.output(input.name, scalar->value);
  }
  return tape.finish();
}

CoverageArtifact rewrite(std::string name, const Program& source, Slot slot,
                         std::span<const Pass> passes) {
  CoverageArtifact result{Artifact::untouched(std::move(name), source), {}};
  PipelineResult rewritten = run_passes(result.artifact.source, slot, passes);
  result.artifact.program = std::move(rewritten.program);
  result.passes = std::move(rewritten.passes);
  return result;
}

}  // namespace

NamedVars::NamedVars(std::vector<NamedVar> vars, Category missing)
    : vars_(std::move(vars)), missing_(missing) {}

Var NamedVars::operator[](std::string_view name) const {
  const auto found = std::ranges::find(vars_, name, &NamedVar::name);
  if (found != vars_.end()) return found->value;
  std::string known;
  for (const NamedVar& var : vars_) known += (known.empty() ? "" : ", ") + var.name;
  throw Error(missing_, "found the name " + quoted(name) + ", expected one of those declared: " +
                            (known.empty() ? "none" : known));
}

TrainingSpec with_optimizer(TrainingSpec spec, std::shared_ptr<const Optimizer> optimizer) {
  const Type* first =
      spec.parameters.empty() ? nullptr : declared_type(spec, spec.parameters.front());
  if (first == nullptr) bad_declaration("found no declared parameter, expected at least one");
  if (optimizer == nullptr) bad_declaration("found no optimizer, expected one");
  const DType dtype = first->dtype;
  spec.state = optimizer->state();
  spec.optimizer_inputs.clear();
  for (const std::string& name : optimizer->scalar_names()) {
    spec.optimizer_inputs.push_back({name, {dtype, {}}});
  }
  spec.update = [optimizer](const UpdateArguments& arguments) {
    const auto values = [](const NamedVars& vars) {
      std::vector<Var> result;
      for (const NamedVar& var : vars.all()) result.push_back(var.value);
      return result;
    };
    return optimizer->update(arguments.parameter, arguments.gradient, values(arguments.state),
                             values(arguments.optimizer_inputs));
  };
  spec.step_scalars = [optimizer, dtype](Var count) { return optimizer->scalars(count, dtype); };
  return spec;
}

Passes Passes::for_target(const Target& target) {
  return {default_pipeline(target, Slot::forward), default_pipeline(target, Slot::derivative),
          default_pipeline(target, Slot::update)};
}

TrainingStep prepare_training_step(const TrainingSpec& spec, const Bindings& bindings,
                                   const Target& target, const HasHandler& has_handler,
                                   const Passes& passes) {
  check_declaration(spec);
  check_update_signature(spec);
  const Program loss = mulgrad::bind(trace_loss(spec), bindings);
  const Derivative derived = derive(loss, {"loss"}, spec.parameters, {spec.unused});

  TrainingStep step;
  step.name = spec.name;
  step.parameters = spec.parameters;
  step.state = spec.state;
  step.optimizer_inputs = spec.optimizer_inputs;
  step.artifacts.push_back(rewrite("forward", derived.forward, Slot::forward, passes.forward));
  step.artifacts.push_back(
      rewrite("derivative", derived.derivative, Slot::derivative, passes.derivative));
  std::map<std::string, std::size_t> updates;
  for (const std::string& parameter : spec.parameters) {
    const Type& type = *declared_type(spec, parameter);
    const auto [known, is_new] = updates.emplace(type_name(type), step.artifacts.size());
    if (is_new) {
      step.artifacts.push_back(rewrite("update." + type_name(type),
                                       trace_update(spec, parameter, type), Slot::update,
                                       passes.update));
    } else {
      ++step.artifacts[known->second].multiplicity;
    }
    step.update_of.push_back(known->second);
  }
  if (spec.clip_norm) {
    step.has_clip = true;
    step.artifacts.push_back(rewrite("clip", trace_clip(spec), Slot::update, passes.update));
  }
  if (spec.step_scalars) {
    step.has_step_scalars = true;
    step.artifacts.push_back(
        rewrite("step_scalars", trace_step_scalars(spec), Slot::update, passes.update));
  }
  step.coverage = coverage(step.artifacts, target, has_handler);
  return step;
}

void require_supported(const TrainingStep& step) { throw_if_refused(step.coverage.unsupported); }

Program step_program(const TrainingStep& step) {
  Builder builder(step.name);
  const Program& forward = step.forward().program;
  const Program& derivative = step.derivative().program;

  std::vector<ValueId> inputs;
  for (const Input& input : forward.inputs()) {
    inputs.push_back(builder.input(input.name, input.type));
  }
  const auto parameter_value = [&](std::size_t parameter) {
    return inputs[static_cast<std::size_t>(forward.find_input(step.parameters[parameter]))];
  };
  std::vector<std::vector<ValueId>> states(step.parameters.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const std::string& state : step.state) {
      states[i].push_back(
          builder.input(step.parameters[i] + "." + state, builder.type(parameter_value(i))));
    }
  }
  std::vector<ValueId> optimizer_inputs;
  if (step.has_step_scalars) {
    optimizer_inputs.push_back(builder.input("count", kCount));
  } else {
    for (const DeclaredInput& input : step.optimizer_inputs) {
      optimizer_inputs.push_back(builder.input(input.name, input.type));
    }
  }

  const std::vector<ValueId> results = append(builder, forward, inputs);
  std::unordered_map<std::string, ValueId> captures;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Output& output = forward.outputs()[i];
    if (output.role == OutputRole::capture) captures.emplace(output.name, results[i]);
  }
  const ValueId loss = results[static_cast<std::size_t>(forward.find_output("loss"))];
  std::vector<ValueId> arguments;
  for (const Input& input : derivative.inputs()) {
    builder.set_origin(kNoOrigin);
    arguments.push_back(
        input.role == InputRole::capture
            ? captures.at(input.name)
            : builder.add(Fill{Literal::one(input.type.dtype), input.type.shape}, {}));
  }
  const std::vector<ValueId> gradients = append(builder, derivative, arguments);
  if (const Artifact* scalars = step.step_scalars()) {
    optimizer_inputs = append(builder, scalars->program, optimizer_inputs);
  }
  if (const Artifact* clip = step.clip()) {
    optimizer_inputs.push_back(append(builder, clip->program, gradients)[0]);
  }
  builder.output("loss", loss);
  std::vector<std::vector<ValueId>> updated;
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    std::vector<ValueId> values{parameter_value(i), gradients[i]};
    values.insert(values.end(), states[i].begin(), states[i].end());
    values.insert(values.end(), optimizer_inputs.begin(), optimizer_inputs.end());
    updated.push_back(append(builder, step.update(i).program, values));
    builder.output("new." + step.parameters[i], updated[i][0]);
  }
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    for (std::size_t k = 0; k < step.state.size(); ++k) {
      builder.output("new." + step.parameters[i] + "." + step.state[k], updated[i][1 + k]);
    }
  }
  Program program = builder.finish();
  verify(program);
  return program;
}

}  // namespace mulgrad
