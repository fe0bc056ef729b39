#include "tests/support/random_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/builder.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad::testing {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// --- the rules by definition ---

bool is_node(const Operand& operand) { return !operand.is_literal() && operand.value().is_node(); }

int uses_of(const Program& program, ValueId value) {
  int uses = 0;
  for (const Node& node : program.nodes()) {
    for (const Operand& operand : node.operands) {
      uses += !operand.is_literal() && operand.value() == value ? 1 : 0;
    }
  }
  for (const Output& output : program.outputs()) uses += output.value == value ? 1 : 0;
  return uses;
}

bool is_f32_or_f64(const Type& type) {
  return type.dtype == DType::f32 || type.dtype == DType::f64;
}

int first_failing_clause(const Program& program, const Node& q) {
  const Operand& left = q.operands[0];
  const Operand& right = q.operands[1];
  if (left.is_literal() || !right.is_literal()) return 1;
  const double d = right.literal().as_double();
  if (!std::isfinite(d)) return 1;
  if (!is_node(left)) return 2;
  const Node& b = program.node(left.value());
  if (b.text_name() != "stablehlo.broadcast_in_dim") return 2;
  if (!is_f32_or_f64(b.type) || b.type.rank() != 2) return 3;
  const Dim r = b.type.shape[0];
  const Dim c = b.type.shape[1];
  if (!r.is_static() || !c.is_static() || r.size() == 0 || c.size() == 0) return 3;
  const Type& g = program.type(b.operands[0].value());
  if (g.dtype != b.type.dtype || g.rank() != 2 || g.shape[0] != Dim(1) || g.shape[1] != Dim(1)) {
    return 4;
  }
  const std::int64_t count = r.size() * c.size();  // the programs of these tests are small
  if (b.type.dtype == DType::f32 ? d != static_cast<float>(count)
                                 : d != static_cast<double>(count)) {
    return 5;
  }
  if (!(q.type == b.type)) return 6;
  return uses_of(program, left.value()) == 1 ? 0 : 7;
}

int first_failing_clause(const Type& x, const Mean& mean) {
  if (x.rank() != 2) return 2;
  if (mean.axes != Axes{0, 1}) return 3;
  for (const Dim& dim : x.shape) {
    if (!dim.is_static() || dim.size() == 0) return 4;
  }
  return is_f32_or_f64(x) ? 0 : 5;
}

std::vector<bool> reached(const Program& program) {
  std::vector<bool> result(program.nodes().size());
  for (const Output& output : program.outputs()) {
    if (output.value.is_node()) result[at(output.value.index())] = true;
  }
  for (std::size_t i = result.size(); i-- > 0;) {
    if (!result[i]) continue;
    for (const Operand& operand : program.nodes()[i].operands) {
      if (is_node(operand)) result[at(operand.value().index())] = true;
    }
  }
  return result;
}

}  // namespace

std::vector<Candidate> judge_mean_derivative(const Program& program) {
  std::vector<Candidate> result;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[at(i)];
    if (node.text_name() != "stablehlo.divide") continue;
    Candidate candidate{i, first_failing_clause(program, node), {}};
    if (candidate.clause == 0) candidate.source = {node.operands[0].value().index(), i};
    result.push_back(std::move(candidate));
  }
  return result;
}

std::vector<Candidate> judge_mean(const Program& program) {
  std::vector<Candidate> result;
  const std::vector<bool> is_reached = reached(program);
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const Node& node = program.nodes()[at(i)];
    const Mean* const mean = std::get_if<Mean>(&node.op);
    if (mean == nullptr || !is_reached[at(i)]) continue;
    Candidate candidate{i, first_failing_clause(program.type(node.operands[0].value()), *mean), {}};
    if (candidate.clause == 0) candidate.source = {i};
    result.push_back(std::move(candidate));
  }
  return result;
}

// --- the subjects ---

Subject mean_derivative_subject(Pass pass) {
  // {sign_of_zero, ulp(1)}
  const auto agree = [](const Tensor& got, const Tensor& want, const Tensor&) {
    for (std::int64_t i = 0; i < want.elements(); ++i) {
      if (ulp_distance(got.element(i), want.element(i)) > 1) return false;
    }
    return true;
  };
  return {std::move(pass), judge_mean_derivative, agree};
}

Subject mean_subject(Pass pass) {
  // {sign_of_zero, reassociates, ulp(1)}: within 8 eps of the mean magnitude.
  const auto agree = [](const Tensor& got, const Tensor& want, const Tensor& x) {
    double magnitude = 0;
    for (const double element : x.to_doubles()) magnitude += std::fabs(element);
    if (!std::isfinite(magnitude)) return true;  // intermediates may overflow
    const double eps = std::ldexp(1.0, -mantissa_bits(x.dtype()));
    const double bound = 8 * eps * magnitude / static_cast<double>(x.elements());
    return std::fabs(got.to_doubles()[0] - want.to_doubles()[0]) <= bound;
  };
  return {std::move(pass), judge_mean, agree};
}

std::string_view to_string(Fault fault) {
  constexpr std::string_view kNames[] = {
      "threw", "fired_elsewhere", "structure", "explanation", "second_run", "values", "round_trip"};
  return kNames[static_cast<std::size_t>(fault)];
}

namespace {

// --- the checks ---

std::optional<Failure> check_places(const std::vector<Candidate>& candidates,
                                    const Program& program, const PassResult& result) {
  std::vector<std::vector<std::int64_t>> expected;
  for (const Candidate& candidate : candidates) {
    if (candidate.clause == 0) expected.push_back(candidate.source);
  }
  std::vector<std::vector<std::int64_t>> fired;
  for (const Region& region : result.regions) fired.push_back(region.source);
  if (fired != expected) {
    const auto list = [](const std::vector<std::vector<std::int64_t>>& regions) {
      std::string text;
      for (const auto& region : regions) text += " %" + std::to_string(region.back());
      return text.empty() ? " nothing" : text;
    };
    return Failure{Fault::fired_elsewhere,
                   "it replaces" + list(fired) + ", expected" + list(expected)};
  }
  if (result.changed != !expected.empty() || (!result.changed && !(result.program == program))) {
    return Failure{Fault::structure, "changed and the program contradict each other"};
  }
  return std::nullopt;
}

// The way from the values of the source to those of the result; the inner nodes of a region have no
// counterpart.
class Counterparts {
 public:
  Counterparts(const Program& source, const PassResult& result)
      : nodes_(source.nodes().size()), inside_(nodes_.size()) {
    std::vector<bool> emitted(result.program.nodes().size());
    for (const Region& region : result.regions) {
      for (const std::int64_t node : region.source) inside_[at(node)] = true;
      for (const std::int64_t node : region.emitted) emitted[at(node)] = true;
      nodes_[at(region.source.back())] = region.terminal;
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (inside_[i]) continue;
      while (next < emitted.size() && emitted[next]) ++next;
      if (next == emitted.size()) return;  // fewer nodes than in the source
      nodes_[i] = ValueId::node(static_cast<std::int64_t>(next++));
    }
    while (next < emitted.size() && emitted[next]) ++next;
    complete_ = next == emitted.size();
  }

  bool complete() const { return complete_; }
  bool inside(std::size_t node) const { return inside_[node]; }
  std::optional<ValueId> of(ValueId source) const {
    return source.is_input() ? source : nodes_[at(source.index())];
  }

 private:
  std::vector<std::optional<ValueId>> nodes_;
  std::vector<bool> inside_;
  bool complete_ = false;
};

std::string kinds_of(const Program& program, const Region& region) {
  std::string kinds;
  for (const std::int64_t node : region.emitted) {
    kinds += std::string(program.nodes()[at(node)].text_name()) + " ";
  }
  return kinds;
}

std::optional<Failure> check_structure(const Program& source, const PassResult& result) {
  const auto wrong = [](std::string text) { return Failure{Fault::structure, std::move(text)}; };
  const Program& after = result.program;
  if (!std::ranges::equal(source.inputs(), after.inputs())) return wrong("the inputs differ");
  const Counterparts counterparts(source, result);
  if (!counterparts.complete()) return wrong("there are nodes more or fewer beside the regions");
  for (std::size_t i = 0; i < source.nodes().size(); ++i) {
    if (counterparts.inside(i)) continue;
    Node expected = source.nodes()[i];
    for (Operand& operand : expected.operands) {
      if (operand.is_literal()) continue;
      const auto counterpart = counterparts.of(operand.value());
      if (!counterpart) return wrong("%" + std::to_string(i) + " read a node that vanished");
      operand = *counterpart;
    }
    const ValueId there = *counterparts.of(ValueId::node(static_cast<std::int64_t>(i)));
    if (!(after.node(there) == expected)) return wrong("%" + std::to_string(i) + " changed");
  }
  if (source.outputs().size() != after.outputs().size()) return wrong("the outputs differ");
  for (std::size_t i = 0; i < source.outputs().size(); ++i) {
    Output expected = source.outputs()[i];
    const auto counterpart = counterparts.of(expected.value);
    if (!counterpart) return wrong("output \"" + expected.name + "\" vanished");
    expected.value = *counterpart;
    if (!(after.outputs()[i] == expected)) return wrong("output \"" + expected.name + "\" changed");
  }
  const std::string five =
      "stablehlo.constant stablehlo.dot_general stablehlo.constant stablehlo.dot_general "
      "stablehlo.multiply ";
  for (const Region& region : result.regions) {
    const std::string kinds = kinds_of(after, region);
    const bool drops_axes = after.type(region.terminal).rank() == 0;
    if (kinds != five + (drops_axes ? "stablehlo.reshape " : "")) {
      return wrong("a region is " + kinds);
    }
  }
  return std::nullopt;
}

std::optional<Failure> check_explanation(const Subject& subject, const Program& program,
                                         const std::vector<Candidate>& candidates) {
  if (!subject.pass.explain) return std::nullopt;
  const std::vector<std::string> lines = subject.pass.explain(program);
  for (const Candidate& candidate : candidates) {
    const std::string verdict =
        candidate.clause == 0 ? "rewritten" : "clause " + std::to_string(candidate.clause) + ":";
    const std::string expected =
        brief_name(program, ValueId::node(candidate.node)) + ": " + verdict;
    if (std::ranges::none_of(lines, [&](const auto& line) { return line.starts_with(expected); })) {
      return Failure{Fault::explanation, "expected the explanation " + expected};
    }
  }
  return std::nullopt;
}

Program without_symbols(const Program& program) {
  Bindings bindings;
  for (const std::string& symbol : symbols(program)) bindings[symbol] = 3;
  return bindings.empty() ? program : mulgrad::bind(program, bindings);
}

// Runs both. Where a region stood, the source goes on with what the region computed, once that has
// been found near enough to its own: so every rounding is judged where it happens, and all else has
// to be equal bit for bit.
std::optional<Failure> check_values(const Subject& subject, const Program& unbound,
                                    const PassResult& result) {
  const Program source = without_symbols(unbound);
  const Program after = without_symbols(result.program);
  const std::vector<Tensor> inputs = draw_inputs(source, Draw::mixed, source.hash());
  std::vector<std::optional<Tensor>> got(after.nodes().size());
  const std::vector<Tensor> outputs = interpret(
      after, inputs, [&](ValueId id, const Tensor& value) { got[at(id.index())] = value; });

  std::vector<const Region*> root_of(source.nodes().size());
  for (const Region& region : result.regions) root_of[at(region.source.back())] = &region;
  std::vector<std::optional<Tensor>> want(source.nodes().size());
  const auto value = [&](ValueId id) {
    return id.is_input() ? &inputs[at(id.index())] : &*want[at(id.index())];
  };
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Node& node = source.nodes()[i];
    std::vector<const Tensor*> operands;
    for (const Operand& operand : node.operands) {
      operands.push_back(operand.is_literal() ? nullptr : value(operand.value()));
    }
    want[i] = evaluate_node(node, operands);
    if (root_of[i] == nullptr) continue;
    const Tensor& terminal = *got[at(root_of[i]->terminal.index())];
    if (!(terminal.type() == node.type) || !subject.agree(terminal, *want[i], *operands[0])) {
      return Failure{Fault::values, "%" + std::to_string(i) + " and its region are too far apart"};
    }
    want[i] = terminal;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = source.outputs()[i];
    if (!(*value(output.value) == outputs[i])) {
      return Failure{Fault::values, "output \"" + output.name + "\" differs"};
    }
  }
  return std::nullopt;
}

std::optional<Failure> check_unguarded(const Subject& subject, const Program& program,
                                       Depth depth) {
  const std::vector<Candidate> candidates = subject.judge(program);
  const PassResult result = subject.pass.run(program);
  if (auto failure = check_places(candidates, program, result)) return failure;
  if (auto failure = check_explanation(subject, program, candidates)) return failure;
  if (result.changed) {
    verify(result.program);
    if (auto failure = check_structure(program, result)) return failure;
    if (auto failure = check_values(subject, program, result)) return failure;
    const PassResult again = subject.pass.run(result.program);
    if (again.changed || !again.regions.empty() || !(again.program == result.program)) {
      return Failure{Fault::second_run, "a second run changes something"};
    }
  }
  if (depth == Depth::with_text &&
      (!(parse(print(program)) == program) || !(parse(print(result.program)) == result.program))) {
    return Failure{Fault::round_trip, "the text reads as another program"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> check(const Subject& subject, const Program& program, Depth depth) {
  try {
    return check_unguarded(subject, program, depth);
  } catch (const std::exception& error) {
    return Failure{Fault::threw, error.what()};
  }
}

namespace {

// --- making small ---

// The program without some of its parts. A dropped node that is still read becomes an input; a
// dropped input must not be read.
struct Cut {
  std::int64_t node = -1;
  std::int64_t input = -1;
  std::int64_t output = -1;
};

Program without(const Program& source, const Cut& cut) {
  Builder builder(source.name());
  std::vector<std::optional<ValueId>> inputs(source.inputs().size());
  std::vector<std::optional<ValueId>> nodes(source.nodes().size());
  const auto counterpart = [&](ValueId id) {
    return *(id.is_input() ? inputs : nodes)[at(id.index())];
  };
  for (std::int64_t i = 0; i < std::ssize(source.inputs()); ++i) {
    const Input& input = source.inputs()[at(i)];
    if (i != cut.input) inputs[at(i)] = builder.input(input.name, input.type, input.role);
  }
  const Uses uses(source);
  for (std::int64_t i = 0; i < std::ssize(source.nodes()); ++i) {
    const Node& node = source.nodes()[at(i)];
    if (i == cut.node) {
      if (uses.count(ValueId::node(i)) == 0) continue;
      std::string name = "v";
      while (source.find_input(name) >= 0) name += "v";
      nodes[at(i)] = builder.input(name, node.type);
      continue;
    }
    std::vector<Operand> operands;
    for (const Operand& operand : node.operands) {
      operands.push_back(operand.is_literal() ? operand : Operand(counterpart(operand.value())));
    }
    nodes[at(i)] = builder.add(node.op, operands);
  }
  for (std::int64_t i = 0; i < std::ssize(source.outputs()); ++i) {
    const Output& output = source.outputs()[at(i)];
    if (i != cut.output) builder.output(output.name, counterpart(output.value), output.role);
  }
  return builder.finish();
}

// One round: tries every part once, the last first.
Program cut_once(Program program, const std::function<bool(const Program&)>& fails) {
  const auto try_cut = [&](const Cut& cut) {
    Program smaller = without(program, cut);
    if (fails(smaller)) program = std::move(smaller);
  };
  for (std::int64_t i = std::ssize(program.outputs()); i-- > 0;) {
    if (program.outputs().size() > 1) try_cut({.output = i});
  }
  for (std::int64_t i = std::ssize(program.nodes()); i-- > 0;) try_cut({.node = i});
  const Uses uses(program);
  for (std::int64_t i = std::ssize(program.inputs()); i-- > 0;) {
    if (uses.count(ValueId::input(i)) == 0) try_cut({.input = i});
  }
  return program;
}

}  // namespace

Program shrink(const Subject& subject, const Program& program, Fault fault) {
  const auto fails = [&](const Program& smaller) {
    const auto failure = check(subject, smaller, Depth::with_text);
    return failure && failure->fault == fault;
  };
  Program smallest = program;
  while (true) {
    Program smaller = cut_once(smallest, fails);
    if (smaller == smallest) return smallest;
    smallest = std::move(smaller);
  }
}

}  // namespace mulgrad::testing
