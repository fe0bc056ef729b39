#include "core/rewrite/pass_manager.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <optional>

namespace mulgrad {
namespace {

// What is wrong, or nothing.
using Violation = std::optional<std::string>;

Error violation(const Pass& pass, std::int64_t position, Slot slot, const std::string& message) {
  return {Category::expansion_contract_violation, message,
          "pass \"" + pass.name + "\" at position " + std::to_string(position) + " of the " +
              std::string(to_string(slot)) + " slot"};
}

Violation check_admitted(const Pass& pass, Slot slot, const Numerics& allowed) {
  if (std::ranges::count(pass.accepts, slot) == 0) {
    std::string accepted;
    for (const Slot other : pass.accepts) {
      accepted += (accepted.empty() ? "" : ", ") + std::string(to_string(other));
    }
    return "found the " + std::string(to_string(slot)) +
           " slot, expected one that it accepts: " + (accepted.empty() ? "none" : accepted);
  }
  if (!allowed.allows(pass.numerics)) {
    return "found the numerics " + pass.numerics.to_string() + ", expected a subset of " +
           allowed.to_string();
  }
  return std::nullopt;
}

Violation check_properties(std::span<const Property> properties, const Program& program,
                           const std::string& verb) {
  for (const Property& property : properties) {
    if (const auto wrong = property.violation(program)) {
      return "it " + verb + " \"" + property.name + "\": " + *wrong;
    }
  }
  return std::nullopt;
}

std::string_view kind_of_input(InputRole role) {
  constexpr std::string_view kNames[] = {"input", "seed", "capture"};
  return kNames[static_cast<int>(role)];
}
std::string_view kind_of_output(OutputRole role) {
  return role == OutputRole::output ? "output" : "captured result";
}

// One entry of an interface, as messages show it: `input "x" tensor<3x5xf32>`.
std::string entry(std::string_view kind, const std::string& name, const Type& type) {
  return std::string(kind) + " \"" + name + "\" " + type.to_string();
}

// The places of an interface's entries: in order, and then the captures by name. Captures are
// linked by name alone, so a pass may list them in any order.
template <class Entry>
std::vector<std::size_t> canonical_order(std::span<const Entry> entries) {
  const auto is_capture = [&](std::size_t i) {
    return entries[i].role == decltype(entries[i].role)::capture;
  };
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (is_capture(a) != is_capture(b)) return is_capture(b);
    return is_capture(a) && entries[a].name < entries[b].name;
  });
  return order;
}

std::vector<std::string> input_entries(const Program& program) {
  std::vector<std::string> entries;
  for (const std::size_t i : canonical_order(program.inputs())) {
    const Input& input = program.inputs()[i];
    entries.push_back(entry(kind_of_input(input.role), input.name, input.type));
  }
  return entries;
}

std::vector<std::string> output_entries(const Program& program) {
  std::vector<std::string> entries;
  for (const std::size_t i : canonical_order(program.outputs())) {
    const Output& output = program.outputs()[i];
    entries.push_back(entry(kind_of_output(output.role), output.name, program.type(output.value)));
  }
  return entries;
}

Violation compare_entries(std::string_view what, const std::vector<std::string>& before,
                          const std::vector<std::string>& after) {
  const std::size_t common = std::min(before.size(), after.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (before[i] == after[i]) continue;
    return "found at " + std::string(what) + " " + std::to_string(i) + " " + after[i] +
           ", expected " + before[i];
  }
  if (before.size() > common) return "found no " + before[common] + " any more";
  if (after.size() > common) return "found a new " + after[common];
  return std::nullopt;
}

constexpr std::size_t kOutputsAtOnce = 64;

// Per input: which of these outputs depend on it, a bit each. One walk for 64 outputs, or programs
// with many gradients would take quadratic time.
std::vector<std::uint64_t> dependants(const Program& program,
                                      std::span<const std::size_t> outputs) {
  std::vector<std::uint64_t> inputs(program.inputs().size());
  std::vector<std::uint64_t> nodes(program.nodes().size());
  const auto mark = [&](ValueId value, std::uint64_t bits) {
    (value.is_input() ? inputs : nodes)[static_cast<std::size_t>(value.index())] |= bits;
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    mark(program.outputs()[outputs[i]].value, std::uint64_t{1} << i);
  }
  // Operands come before their node, so one walk from the end sees every reader first.
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i] == 0) continue;
    for (const Operand& operand : program.nodes()[i].operands) {
      if (!operand.is_literal()) mark(operand.value(), nodes[i]);
    }
  }
  return inputs;
}

bool is_zero_fill(const Program& program, ValueId value) {
  const auto* fill = value.is_node() ? std::get_if<Fill>(&program.node(value).op) : nullptr;
  return fill != nullptr && !fill->value.is_nan() && fill->value.as_double() == 0;
}

// The interfaces are equal already. Losing an input (a zero was folded) or gaining one (two
// products became one) alone may be right; both at once means that one input is read in place of
// another. A gradient is linear in the seeds: one that has lost all of them is zero or wrong.
Violation check_dependence(const Program& before, const Program& after) {
  const std::vector<std::size_t> old_places = canonical_order(before.inputs());
  const std::vector<std::size_t> new_places = canonical_order(after.inputs());
  const std::vector<std::size_t> old_outputs = canonical_order(before.outputs());
  const std::vector<std::size_t> new_outputs = canonical_order(after.outputs());
  const std::size_t count = old_places.size();
  std::vector<bool> any_before(count);
  std::vector<bool> any_after(count);
  for (std::size_t first = 0; first < old_outputs.size(); first += kOutputsAtOnce) {
    const std::size_t size = std::min(kOutputsAtOnce, old_outputs.size() - first);
    const auto old_inputs = dependants(before, std::span(old_outputs).subspan(first, size));
    const auto new_inputs = dependants(after, std::span(new_outputs).subspan(first, size));
    for (std::size_t i = 0; i < size; ++i) {
      const Output& output = before.outputs()[old_outputs[first + i]];
      const Input* lost = nullptr;
      const Input* gained = nullptr;
      const Input* lost_seed = nullptr;
      bool has_seed = false;
      for (std::size_t k = 0; k < count; ++k) {
        const Input& input = before.inputs()[old_places[k]];
        const bool was_read = (old_inputs[old_places[k]] >> i & 1) != 0;
        const bool is_read = (new_inputs[new_places[k]] >> i & 1) != 0;
        any_before[k] = any_before[k] || was_read;
        any_after[k] = any_after[k] || is_read;
        if (was_read && !is_read) lost = &input;
        if (!was_read && is_read) gained = &input;
        if (input.role != InputRole::seed) continue;
        if (was_read && !is_read) lost_seed = &input;
        has_seed = has_seed || is_read;
      }
      if (lost != nullptr && gained != nullptr) {
        return "the output \"" + output.name + "\" reads the " +
               entry(kind_of_input(gained->role), gained->name, gained->type) + ", expected the " +
               entry(kind_of_input(lost->role), lost->name, lost->type);
      }
      if (lost_seed != nullptr && !has_seed &&
          !is_zero_fill(after, after.outputs()[new_outputs[first + i]].value)) {
        return "the output \"" + output.name + "\" does not depend on the seed \"" +
               lost_seed->name + "\" any more";
      }
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    const Input& input = before.inputs()[old_places[k]];
    if (input.role == InputRole::seed && any_before[k] && !any_after[k]) {
      return "no output depends on the seed \"" + input.name + "\" any more";
    }
  }
  return std::nullopt;
}

Violation check_regions(const Pass& pass, const Program& before, const PassResult& result) {
  const auto inside = [](const std::vector<std::int64_t>& nodes, const Program& program) {
    return std::ranges::all_of(
        nodes, [&](std::int64_t node) { return node >= 0 && node < std::ssize(program.nodes()); });
  };
  for (const Region& region : result.regions) {
    const std::int64_t limit = region.terminal.is_input() ? std::ssize(result.program.inputs())
                                                          : std::ssize(result.program.nodes());
    if (!inside(region.source, before) || !inside(region.emitted, result.program) ||
        region.terminal.index() >= limit) {
      return "found a region with a node outside of the pass's programs";
    }
    if (!pass.numerics.allows(region.numerics)) {
      return "found a region of numerics " + region.numerics.to_string() +
             ", expected a subset of the declared " + pass.numerics.to_string();
    }
  }
  return std::nullopt;
}

Violation check_result(const Pass& pass, const Program& before, const PassResult& result,
                       bool changed) {
  if (changed != result.changed) {
    return std::string("it says that it changed ") + (result.changed ? "something" : "nothing") +
           ", but its result " + (changed ? "differs from" : "equals") + " its input";
  }
  if (const auto wrong = check_regions(pass, before, result)) return wrong;
  if (changed) {
    if (const auto wrong =
            compare_entries("input", input_entries(before), input_entries(result.program))) {
      return wrong;
    }
    if (const auto wrong =
            compare_entries("output", output_entries(before), output_entries(result.program))) {
      return wrong;
    }
    if (const auto wrong = check_dependence(before, result.program)) return wrong;
  }
  return check_properties(pass.leaves, result.program, "does not leave");
}

PassResult run_one(const Pass& pass, std::int64_t position, Slot slot, const Program& program) {
  try {
    return pass.run(program);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& cause) {
    std::throw_with_nested(
        violation(pass, position, slot, std::string("it threw: ") + cause.what()));
  } catch (...) {
    std::throw_with_nested(
        violation(pass, position, slot, "it threw something that is no std::exception"));
  }
}

void verify_result(const Pass& pass, std::int64_t position, Slot slot, const Program& program) {
  try {
    verify(program);
  } catch (const Error& cause) {
    std::throw_with_nested(violation(pass, position, slot,
                                     std::string("its result does not verify: ") + cause.what()));
  }
}

// A flag per node of the pipeline's program: does the program hold a descendant?
std::vector<bool> present_origins(const Program& program, std::size_t size) {
  std::vector<bool> present(size);
  for (const Origin origin : program.origins()) {
    if (origin != kNoOrigin) present[static_cast<std::size_t>(origin)] = true;
  }
  return present;
}

std::vector<TouchedNode> touched_nodes(const Program& before, const PassResult& result,
                                       std::size_t size) {
  if (!result.changed) return {};
  std::vector<std::optional<TouchedNode>> touched(size);
  for (const Region& region : result.regions) {
    for (const std::int64_t node : region.source) {
      const Origin origin = before.origins()[static_cast<std::size_t>(node)];
      if (origin == kNoOrigin) continue;
      auto& found = touched[static_cast<std::size_t>(origin)];
      if (!found) found = TouchedNode{origin, {}};
      found->numerics = found->numerics | region.numerics;
      found->work_factor = std::max(found->work_factor, region.work_factor);
    }
  }
  const std::vector<bool> old_origins = present_origins(before, size);
  const std::vector<bool> new_origins = present_origins(result.program, size);
  std::vector<TouchedNode> nodes;
  for (std::size_t i = 0; i < size; ++i) {
    if (old_origins[i] && !new_origins[i] && !touched[i]) {
      touched[i] = TouchedNode{static_cast<Origin>(i), {}};
    }
    if (touched[i]) nodes.push_back(*touched[i]);
  }
  return nodes;
}

std::vector<Declined> by_origin(std::vector<Declined> declined, const Program& before) {
  for (Declined& left : declined) {
    left.node = before.origins()[static_cast<std::size_t>(left.node)];
  }
  std::erase_if(declined, [](const Declined& left) { return left.node == kNoOrigin; });
  return declined;
}

}  // namespace

PipelineResult run_passes(const Program& program, Slot slot, std::span<const Pass> passes,
                          const Numerics& allowed) {
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (const auto wrong = check_admitted(passes[i], slot, allowed)) {
      throw violation(passes[i], static_cast<std::int64_t>(i), slot, *wrong);
    }
  }
  PipelineResult pipeline;
  pipeline.program = program.with_fresh_origins();
  for (const Pass& pass : passes) {
    const std::int64_t position = std::ssize(pipeline.passes);
    if (const auto wrong = check_properties(pass.needs, pipeline.program, "needs")) {
      throw violation(pass, position, slot, *wrong);
    }
    const auto start = std::chrono::steady_clock::now();
    PassResult result = run_one(pass, position, slot, pipeline.program);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    // What equals a program that has been checked needs no second look.
    const bool changed = !(pipeline.program == result.program);
    if (changed) verify_result(pass, position, slot, result.program);
    if (const auto wrong = check_result(pass, pipeline.program, result, changed)) {
      throw violation(pass, position, slot, *wrong);
    }
    if (result.changed) pipeline.numerics = pipeline.numerics | pass.numerics;
    std::vector<TouchedNode> touched =
        touched_nodes(pipeline.program, result, program.nodes().size());
    pipeline.passes.push_back({pass.name, position, result.changed, taken.count(),
                               std::move(result.regions), std::move(touched),
                               by_origin(std::move(result.declined), pipeline.program)});
    pipeline.program = std::move(result.program);
  }
  return pipeline;
}

}  // namespace mulgrad
