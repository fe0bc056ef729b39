#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "autodiff/random.h"
#include "backends/cpu/planner.h"
#include "backends/cpu/session.h"
#include "core/interpreter.h"

namespace mulgrad {
namespace {

void check_type(const Tensor& value, const Type& expected, const std::string& name) {
  const Type found = value.type();
  if (found == expected) return;
  throw Error(found.dtype == expected.dtype ? Category::shape_mismatch : Category::dtype_mismatch,
              "found a tensor of type " + found.to_string() + ", expected " + expected.to_string(),
              name);
}

void check_number(std::string_view what, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(Category::invalid_argument, "found " + std::to_string(found) + " " +
                                              std::string(what) + ", expected " +
                                              std::to_string(expected));
}

// Says whether the types agree without building one.
bool has_type(const Tensor& value, const Type& type) {
  if (value.dtype() != type.dtype || value.rank() != type.rank()) return false;
  for (std::int64_t axis = 0; axis < type.rank(); ++axis) {
    if (value.sizes()[static_cast<std::size_t>(axis)] != type.shape[axis].coefficient()) {
      return false;
    }
  }
  return true;
}

std::int64_t index_in(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? -1 : found - names.begin();
}

// The worst that a value holds.
enum class Fault : std::uint8_t { none, infinite, nan };

Fault fault_of(const Tensor& value) {
  Fault worst = Fault::none;
  if (!is_float(value.dtype())) return worst;
  for (const double element : value.to_doubles()) {
    if (std::isnan(element)) return Fault::nan;
    if (std::isinf(element)) worst = Fault::infinite;
  }
  return worst;
}

// The label of the first value of the forward program that shows the fault while none of its
// operands does. Infinities may be meant, as in a mask, so those that are written down or come in
// are named only where no node has made one.
std::string first_fault(const Artifact& forward, std::span<const Tensor> inputs, Fault fault) {
  const Program& program = forward.program;
  const auto shows = [fault](const Tensor& value) { return fault_of(value) >= fault; };
  std::string given;
  std::string made;
  std::vector<bool> faulty_inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    faulty_inputs.push_back(shows(inputs[i]));
    if (faulty_inputs.back() && given.empty()) {
      given = forward.input_label(static_cast<std::int64_t>(i));
    }
  }
  if (fault == Fault::nan && !given.empty()) return given;
  std::vector<bool> faulty_nodes;
  interpret(program, inputs, [&](ValueId id, const Tensor& value) {
    faulty_nodes.push_back(shows(value));
    if (!faulty_nodes.back() || !made.empty()) return;
    const Node& node = program.node(id);
    if (fault == Fault::infinite && node.operands.empty()) {
      if (given.empty()) given = forward.label(id.index());
      return;
    }
    for (const Operand& operand : node.operands) {
      if (operand.is_literal()) {
        if (shows(Tensor::filled(operand.literal(), {}))) return;
      } else {
        const auto index = static_cast<std::size_t>(operand.value().index());
        if (operand.value().is_input() ? faulty_inputs[index] : faulty_nodes[index]) return;
      }
    }
    made = forward.label(id.index());
  });
  return made.empty() ? given : made;
}

}  // namespace

struct TrainingSession::Impl {
  struct Prepared {
    TrainingStep step;
    std::optional<Plan> plan;  // its inputs: those of the loss but the parameters, then the count
                               // or the optimizer inputs
    std::vector<Type> data_types;
    DType loss_dtype = DType::f32;
    std::vector<Tensor> random;  // per spec.random_inputs: its numbers in the step that runs
  };

  TrainingSpec spec;
  Target target;
  Passes passes;
  std::vector<DeclaredInput> data_inputs;
  std::vector<std::size_t> data_places;       // per data input, the index of the plan's input
  std::vector<std::size_t> random_places;     // the same per random input
  std::vector<std::size_t> parameter_inputs;  // per parameter, the index of its input
  std::vector<Tensor> parameters;
  std::vector<std::vector<Tensor>> state;
  std::int64_t count = 0;
  std::map<Bindings, Prepared> cache;
  std::vector<const Tensor*> given;  // to step() as one array, kept so that no step allocates
  Prepared* last = nullptr;          // into the cache, whose entries stay where they are

  std::shared_ptr<cpu::ThreadPool> pool;
  std::int64_t next_count = 0;  // where plans find it

  Impl(TrainingSpec a, Target b, Passes c, const CpuOptions& options)
      : spec(std::move(a)),
        target(std::move(b)),
        passes(std::move(c)),
        pool(options.pool ? options.pool : cpu::make_pool(options.threads)) {}

  const Type& parameter_type(std::size_t parameter) const {
    return spec.inputs[parameter_inputs[parameter]].type;
  }

  void check_values(std::span<const Tensor> values) const {
    check_number("parameters", values.size(), spec.parameters.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      check_type(values[i], parameter_type(i), spec.parameters[i]);
    }
  }

  Prepared& prepare(const Bindings& bindings) {
    const auto found = cache.find(bindings);
    if (found != cache.end()) return found->second;
    Prepared entry{prepare_training_step(spec, bindings, target, {}, passes), {}, {}, {}, {}};
    for (const DeclaredInput& input : data_inputs) {
      entry.data_types.push_back({input.type.dtype, input.type.shape.bind(bindings)});
    }
    for (const std::string& name : spec.random_inputs) {
      const Type& type = std::ranges::find(spec.inputs, name, &DeclaredInput::name)->type;
      entry.random.emplace_back(type.dtype, type.shape.bind(bindings).sizes());
    }
    return cache.emplace(bindings, std::move(entry)).first->second;
  }

  Prepared& planned(const Bindings& bindings) {
    Prepared& entry = prepare(bindings);
    if (entry.plan) return entry;
    require_supported(entry.step);
    const Program program = step_program(entry.step);
    const Type& loss = program.type(program.outputs()[0].value);
    if (!(loss.shape.elements() == Dim(1))) {
      throw Error(Category::invalid_loss_output,
                  "found a loss of type " + loss.to_string() + ", expected a single element");
    }
    entry.loss_dtype = loss.dtype;
    entry.plan = make_plan(program);
    return entry;
  }

  // Parameters and state are the session's own memory; the plan writes their new values there.
  Plan make_plan(const Program& program) {
    cpu::PlanTask task = cpu::PlanTask::plain(program);
    task.checkpoint = 0;
    std::size_t output = 1;
    const auto commit = [&](std::size_t input, Tensor& value) {
      task.memory[input] = value.bytes();
      task.commits[output++] = input;
    };
    for (std::size_t i = 0; i < parameters.size(); ++i) commit(parameter_inputs[i], parameters[i]);
    std::size_t input = spec.inputs.size();
    for (std::vector<Tensor>& tensors : state) {
      for (Tensor& tensor : tensors) commit(input++, tensor);
    }
    return cpu::make_plan(program, task, pool);
  }

  Prepared& planned_for(std::span<const Tensor* const> data) {
    const auto fits = [&](const Prepared& entry) {
      if (data.size() != entry.data_types.size()) return false;
      for (std::size_t i = 0; i < data.size(); ++i) {
        if (!has_type(*data[i], entry.data_types[i])) return false;
      }
      return true;
    };
    if (last != nullptr && fits(*last)) return *last;
    std::vector<Tensor> values;
    for (const Tensor* value : data) values.push_back(*value);
    last = &planned(infer_bindings(data_inputs, values));
    return *last;
  }

  static double loss_of(const Plan& plan, const Prepared& entry) {
    Literal value{entry.loss_dtype, 0};
    std::memcpy(&value.bits, plan.output(0).data(), plan.output(0).size());
    return value.as_double();
  }

  // The parameters are untouched, so the forward part runs again as it did.
  [[noreturn]] void report(double loss, const Prepared& entry,
                           std::span<const Tensor* const> data) const {
    std::vector<Tensor> inputs;
    std::size_t next = 0;
    for (const DeclaredInput& input : spec.inputs) {
      const std::int64_t parameter = index_in(spec.parameters, input.name);
      const std::int64_t random = index_in(spec.random_inputs, input.name);
      if (parameter >= 0) {
        inputs.push_back(parameters[static_cast<std::size_t>(parameter)]);
      } else if (random >= 0) {
        inputs.push_back(entry.random[static_cast<std::size_t>(random)]);
      } else {
        inputs.push_back(*data[next++]);
      }
    }
    const Fault fault = std::isnan(loss) ? Fault::nan : Fault::infinite;
    const std::string what = fault == Fault::nan ? "NaN" : "infinite";
    const std::string node = first_fault(entry.step.forward(), inputs, fault);
    throw Error(Category::non_finite_loss,
                "step " + std::to_string(count + 1) + ": the loss is " + what +
                    (node.empty() ? "; the interpreter's replay of the step has no such value"
                                  : "; this is the first value that is or holds one"),
                node);
  }
};

TrainingSession::TrainingSession(TrainingSpec spec, Target target, Passes passes,
                                 std::vector<Tensor> parameters, const CpuOptions& options)
    : impl_(
          std::make_unique<Impl>(std::move(spec), std::move(target), std::move(passes), options)) {
  Impl& self = *impl_;
  self.parameter_inputs.resize(self.spec.parameters.size());
  self.random_places.resize(self.spec.random_inputs.size());
  std::size_t declared = 0;
  for (std::size_t i = 0; i < self.spec.inputs.size(); ++i) {
    const std::string& name = self.spec.inputs[i].name;
    const std::int64_t parameter = index_in(self.spec.parameters, name);
    const std::int64_t random = index_in(self.spec.random_inputs, name);
    if (parameter >= 0) {
      self.parameter_inputs[static_cast<std::size_t>(parameter)] = i;
      ++declared;
    } else if (random >= 0) {
      self.random_places[static_cast<std::size_t>(random)] = i - declared;
    } else {
      self.data_inputs.push_back(self.spec.inputs[i]);
      self.data_places.push_back(i - declared);
    }
  }
  if (declared != self.spec.parameters.size()) {
    throw Error(Category::invalid_training_declaration,
                "found " + std::to_string(declared) + " inputs that are parameters, expected the " +
                    std::to_string(self.spec.parameters.size()) + " that are listed");
  }
  self.check_values(parameters);
  for (const Tensor& parameter : parameters) {
    const std::vector<std::int64_t> sizes(parameter.sizes().begin(), parameter.sizes().end());
    self.state.emplace_back(self.spec.state.size(), Tensor(parameter.dtype(), sizes));
  }
  self.parameters = std::move(parameters);
}

TrainingSession::~TrainingSession() = default;
TrainingSession::TrainingSession(TrainingSession&&) noexcept = default;
TrainingSession& TrainingSession::operator=(TrainingSession&&) noexcept = default;

std::span<const DeclaredInput> TrainingSession::data_inputs() const { return impl_->data_inputs; }

double TrainingSession::step(std::span<const Tensor> data,
                             std::span<const Tensor> optimizer_inputs) {
  std::vector<const Tensor*>& given = impl_->given;
  given.clear();
  for (const Tensor& value : data) given.push_back(&value);
  return step(std::span<const Tensor* const>(given), optimizer_inputs);
}

double TrainingSession::step(std::span<const Tensor* const> data,
                             std::span<const Tensor> optimizer_inputs) {
  Impl& self = *impl_;
  Impl::Prepared& entry = self.planned_for(data);
  Plan& plan = *entry.plan;
  for (std::size_t i = 0; i < data.size(); ++i) {
    plan.bind(self.data_places[i], data[i]->bytes().data());
  }
  for (std::size_t i = 0; i < entry.random.size(); ++i) {
    fill_uniform(entry.random[i].data<float>(), self.spec.seed,
                 step_stream(static_cast<std::int64_t>(i), self.count + 1));
    plan.bind(self.random_places[i], entry.random[i].bytes().data());
  }
  const std::size_t first_scalar = data.size() + entry.random.size();
  if (entry.step.has_step_scalars) {
    check_number("optimizer inputs", optimizer_inputs.size(), 0);
    self.next_count = self.count + 1;
    plan.bind(first_scalar, std::as_bytes(std::span(&self.next_count, 1)).data());
  } else {
    check_number("optimizer inputs", optimizer_inputs.size(), self.spec.optimizer_inputs.size());
    for (std::size_t i = 0; i < optimizer_inputs.size(); ++i) {
      const DeclaredInput& declared = self.spec.optimizer_inputs[i];
      if (!has_type(optimizer_inputs[i], declared.type)) {
        check_type(optimizer_inputs[i], declared.type, declared.name);
      }
      plan.bind(first_scalar + i, optimizer_inputs[i].bytes().data());
    }
  }
  plan.run_to_checkpoint();
  const double loss = self.loss_of(plan, entry);
  if (!std::isfinite(loss)) self.report(loss, entry, data);
  plan.run_from_checkpoint();
  ++self.count;
  return loss;
}

const TrainingStep& TrainingSession::prepared(const Bindings& bindings) {
  return impl_->prepare(bindings).step;
}

const Plan& TrainingSession::plan(const Bindings& bindings) {
  return *impl_->planned(bindings).plan;
}

std::int64_t TrainingSession::count() const { return impl_->count; }
std::span<const Tensor> TrainingSession::parameters() const { return impl_->parameters; }
std::span<const std::vector<Tensor>> TrainingSession::state() const { return impl_->state; }

void TrainingSession::restore(std::int64_t count, std::span<const Tensor> parameters,
                              std::span<const std::vector<Tensor>> state) {
  Impl& self = *impl_;
  self.check_values(parameters);
  check_number("parameters with state", state.size(), self.state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    check_number("states of a parameter", state[i].size(), self.spec.state.size());
    for (std::size_t k = 0; k < state[i].size(); ++k) {
      check_type(state[i][k], self.parameter_type(i),
                 self.spec.parameters[i] + "." + self.spec.state[k]);
    }
  }
  // Plans point at the memory, so it is written and not replaced.
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    copy_bytes(parameters[i].bytes(), self.parameters[i].bytes());
    for (std::size_t k = 0; k < state[i].size(); ++k) {
      copy_bytes(state[i][k].bytes(), self.state[i][k].bytes());
    }
  }
  self.count = count;
}

}  // namespace mulgrad
