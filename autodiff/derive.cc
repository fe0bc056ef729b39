#include "autodiff/derive.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "autodiff/rules.h"
#include "autodiff/sweep.h"

namespace mulgrad {
namespace {

void check_outputs(const Program& program, std::span<const std::int64_t> outputs) {
  std::set<std::int64_t> seen;
  for (const std::int64_t index : outputs) {
    const auto refuse = [&](const std::string& what) {
      throw Error(Category::invalid_selected_output,
                  "output " + std::to_string(index) + ": " + what);
    };
    const auto count = std::ssize(program.outputs());
    if (index < 0 || index >= count) {
      refuse("the program has " + std::to_string(count) + " outputs");
    }
    const Output& output = program.outputs()[static_cast<std::size_t>(index)];
    if (output.role != OutputRole::output) {
      refuse("found the captured result \"" + output.name + "\", expected an output");
    }
    const DType dtype = program.type(output.value).dtype;
    if (!is_float(dtype)) {
      refuse("\"" + output.name + "\" has dtype " + std::string(to_string(dtype)) +
             ", expected a float dtype");
    }
    if (!seen.insert(index).second) refuse("\"" + output.name + "\" is selected twice");
  }
}

void check_wrt(const Program& program, std::span<const ValueId> wrt) {
  std::set<ValueId> seen;
  for (const ValueId value : wrt) {
    const auto count =
        value.is_input() ? std::ssize(program.inputs()) : std::ssize(program.nodes());
    if (value.index() >= count) {
      throw Error(Category::invalid_argument, "found " + value.to_string() +
                                                  " to derive with respect to, which the program "
                                                  "does not have");
    }
    const DType dtype = program.type(value).dtype;
    if (!is_float(dtype)) {
      throw Error(Category::dtype_not_differentiable,
                  "found dtype " + std::string(to_string(dtype)) + ", expected a float dtype",
                  program.describe(value));
    }
    if (!seen.insert(value).second) {
      throw Error(Category::invalid_argument,
                  "found the same value twice to derive with respect to", program.describe(value));
    }
  }
}

// The values whose cotangent leads from an output to a gradient: float values that depend on `wrt`
// and that an output depends on, both through ops that pass a cotangent.
ValueSet values_between(const Program& program, std::span<const std::int64_t> outputs,
                        std::span<const ValueId> wrt) {
  ValueSet dependent(program);
  for (const ValueId value : wrt) dependent.insert(value);
  const auto passes = [&](const Node& node) {
    return is_float(node.type.dtype) && !has_zero_derivative(node.op);
  };
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.node(ValueId::node(i));
    if (!passes(node)) continue;
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal() && dependent.contains(operand.value())) {
        dependent.insert(ValueId::node(i));
      }
    }
  }
  ValueSet between(program);
  const auto reach = [&](ValueId value) {
    if (dependent.contains(value)) between.insert(value);
  };
  for (const std::int64_t index : outputs) {
    reach(program.outputs()[static_cast<std::size_t>(index)].value);
  }
  for (std::int64_t i = std::ssize(program.nodes()); i-- > 0;) {
    const Node& node = program.node(ValueId::node(i));
    if (!between.contains(ValueId::node(i)) || !passes(node)) continue;
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal()) reach(operand.value());
    }
  }
  return between;
}

std::string gradient_name(const Program& program, ValueId value) {
  if (value.is_node()) return "grad.n" + std::to_string(value.index());
  return "grad." + program.inputs()[static_cast<std::size_t>(value.index())].name;
}

// The captured results of the forward program: those marked already, then those asked for.
class Captures {
 public:
  explicit Captures(const Program& forward) : forward_(forward) {
    for (const Output& output : forward.outputs()) {
      if (output.role != OutputRole::capture) continue;
      marked_.emplace(output.value, output.name);
      taken_.insert(output.name);
    }
  }

  // To be asked for once per value.
  std::string name(ValueId value) {
    if (const auto found = marked_.find(value); found != marked_.end()) return found->second;
    std::string name;
    do {
      name = "c" + std::to_string(next_++);
    } while (taken_.contains(name));
    added_.push_back({name, value, OutputRole::capture});
    return name;
  }

  // The forward program with all of them marked; node for node the same.
  Program mark() const { return Builder::with_outputs(forward_, added_); }

 private:
  const Program& forward_;
  std::map<ValueId, std::string> marked_;
  std::set<std::string> taken_;
  std::vector<Output> added_;
  std::int64_t next_ = 0;
};

// What the derivative program hands out.
struct Gradient {
  std::string name;
  ValueId value;  // of the draft
};

// The derivative program from its draft: what the gradients reach, captures by first use.
Program finish_draft(Sweep& sweep, std::span<const Gradient> gradients, Captures& captures) {
  Builder& draft = sweep.draft();
  std::vector<ValueId> roots;
  for (const Gradient& gradient : gradients) roots.push_back(gradient.value);
  const std::vector<bool> reached = reachable_nodes(draft.nodes(), roots);

  std::vector<Builder::KeptInput> inputs;
  std::vector<bool> known(draft.inputs().size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Input& input = draft.inputs()[i];
    known[i] = input.role == InputRole::seed;
    if (known[i]) inputs.push_back({ValueId::input(static_cast<std::int64_t>(i)), input.name});
  }
  const auto read = [&](ValueId value) {
    if (value.is_node() || known[static_cast<std::size_t>(value.index())]) return;
    known[static_cast<std::size_t>(value.index())] = true;
    inputs.push_back({value, captures.name(*sweep.source(value))});
  };
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) continue;
    for (const Operand& operand : draft.nodes()[i].operands) {
      if (!operand.is_literal()) read(operand.value());
    }
  }
  for (const Gradient& gradient : gradients) {
    read(gradient.value);
    draft.output(gradient.name, gradient.value);
  }
  draft.keep(inputs, reached);
  return draft.finish();
}

}  // namespace

Derivative derive(const Program& program, std::span<const std::int64_t> outputs,
                  std::span<const ValueId> wrt, DeriveOptions options) {
  check_outputs(program, outputs);
  check_wrt(program, wrt);
  Sweep sweep(program, values_between(program, outputs, wrt));
  Builder& draft = sweep.draft();

  // A seed is the last contribution to its value.
  std::int32_t seeds = 0;
  for (const std::int64_t index : outputs) {
    const Output& output = program.outputs()[static_cast<std::size_t>(index)];
    const Var seed{draft, draft.input(output.name, program.type(output.value), InputRole::seed)};
    const Use use{std::numeric_limits<std::int32_t>::max(), seeds++};
    if (sweep.wanted(output.value)) sweep.contribute(output.value, use, seed);
  }

  // Readers come behind what they read, so from the end every cotangent is complete in its turn.
  std::map<ValueId, std::optional<Var>> gradients;
  for (const ValueId value : wrt) gradients.emplace(value, std::nullopt);
  for (std::int64_t i = std::ssize(program.nodes()); i-- > 0;) {
    const ValueId id = ValueId::node(i);
    if (!sweep.wanted(id)) continue;
    draft.set_origin(static_cast<Origin>(i));
    const std::optional<Var> dy = sweep.total(id);
    if (!dy) continue;  // every reader was a Custom op that passes nothing on
    if (const auto gradient = gradients.find(id); gradient != gradients.end()) {
      gradient->second = dy;
    }
    const Node& node = program.node(id);
    const bool passes_on =
        !has_zero_derivative(node.op) && std::ranges::any_of(node.operands, [&](const Operand& x) {
          return !x.is_literal() && sweep.wanted(x.value());
        });
    if (passes_on) apply_rule(sweep, i, *dy);
  }

  draft.set_origin(kNoOrigin);
  std::vector<Gradient> results;
  for (const ValueId value : wrt) {
    std::optional<Var> gradient = value.is_input() ? sweep.total(value) : gradients.at(value);
    if (!gradient && options.unused == Unused::error) {
      throw Error(Category::missing_derivative_behavior,
                  "the outputs do not depend on it, or only through operations whose derivative is "
                  "zero almost everywhere",
                  program.describe(value));
    }
    if (!gradient) {
      const Type& type = program.type(value);
      gradient = fill(draft, Literal::zero(type.dtype), type.shape);
    }
    results.push_back({gradient_name(program, value), gradient->id()});
  }
  Captures captures(program);
  Program derivative = finish_draft(sweep, results, captures);
  return {captures.mark(), std::move(derivative)};
}

Derivative derive(const Program& program, const std::vector<std::string>& outputs,
                  const std::vector<std::string>& wrt, DeriveOptions options) {
  std::vector<std::int64_t> indices;
  for (const std::string& name : outputs) {
    indices.push_back(program.find_output(name));
    if (indices.back() < 0) {
      throw Error(Category::invalid_selected_output, "the program has no output \"" + name + "\"");
    }
  }
  std::vector<ValueId> values;
  for (const std::string& name : wrt) {
    const std::int64_t index = program.find_input(name);
    if (index < 0) {
      throw Error(Category::invalid_argument, "the program has no input \"" + name + "\"");
    }
    values.push_back(ValueId::input(index));
  }
  return derive(program, indices, values, options);
}

}  // namespace mulgrad
