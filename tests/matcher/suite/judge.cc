#include "tests/matcher/suite/judge.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/interpreter.h"
#include "core/text.h"
#include "tests/support/op_cases.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad::matcher {
namespace {

using Fault = std::optional<std::string>;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

Fault bad_ending(const Reply& reply) {
  switch (reply.ending) {
    case Ending::exited:
      return std::nullopt;
    case Ending::signalled:
      return "ended by signal " + std::to_string(reply.code);
    case Ending::not_run:
      return "cannot be run: " + first_line(reply.errors);
    case Ending::out_of_time:
      return "no end within the time limit";
  }
  return std::nullopt;
}

// The name of the module is nobody's business.
bool same_program(const Program& a, const Program& b) {
  return std::ranges::equal(a.inputs(), b.inputs()) && std::ranges::equal(a.nodes(), b.nodes()) &&
         std::ranges::equal(a.outputs(), b.outputs());
}

Fault interface_fault(const Program& source, const Program& result) {
  if (!std::ranges::equal(source.inputs(), result.inputs())) return "the inputs are not the same";
  const auto same = [&](const Output& a, const Output& b) {
    return a.name == b.name && a.role == b.role && source.type(a.value) == result.type(b.value);
  };
  if (!std::ranges::equal(source.outputs(), result.outputs(), same)) {
    return "the outputs are not the same in order, name and type";
  }
  return std::nullopt;
}

Fault structure_fault(const Case& asked, const Program& result) {
  const std::vector<bool> reached = reachable_nodes(result);
  std::map<std::string, int> found;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i]) ++found[std::string(result.nodes()[i].text_name())];
  }
  for (const auto& [op, expected] : asked.left) {
    if (found[op] != expected) {
      return "found " + std::to_string(found[op]) + " " + op + ", expected " +
             std::to_string(expected);
    }
  }
  return std::nullopt;
}

bool is_small(const Program& program) {
  const auto small = [](const Type& type) {
    std::int64_t elements = 1;
    for (const Dim& dim : type.shape) {
      if (!dim.is_static() || __builtin_mul_overflow(elements, dim.size(), &elements)) return false;
    }
    return elements <= 100'000;
  };
  return std::ranges::all_of(program.inputs(), [&](const Input& x) { return small(x.type); }) &&
         std::ranges::all_of(program.nodes(), [&](const Node& x) { return small(x.type); });
}

double largest_finite(const std::vector<Tensor>& tensors) {
  double largest = 0;
  for (const Tensor& tensor : tensors) {
    for (const double element : tensor.to_doubles()) {
      if (std::isfinite(element)) largest = std::max(largest, std::fabs(element));
    }
  }
  return largest;
}

bool near_enough(const Literal& got, const Literal& want, const Numerics& numerics,
                 double largest) {
  if (got == want || (got.is_nan() && want.is_nan())) return true;
  if (!is_float(want.dtype)) return false;
  if (got.as_double() == 0 && want.as_double() == 0) return numerics.sign_of_zero;
  const std::uint64_t distance = testing::ulp_distance(got, want);
  if (distance <= static_cast<std::uint64_t>(numerics.ulp)) return true;
  if (!numerics.reassociates || !got.is_finite() || !want.is_finite()) return false;
  // Sums of a hundred terms at most: the bound of {reassociates} is far below this one.
  const double eps = std::ldexp(1.0, -mantissa_bits(want.dtype));
  return std::fabs(got.as_double() - want.as_double()) <= 64 * eps * largest;
}

Fault value_fault(const Program& source, const Program& result, const Numerics& numerics,
                  const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> want = interpret(source, inputs);
  const std::vector<Tensor> got = interpret(result, inputs);
  const double largest = largest_finite(inputs);
  for (std::size_t i = 0; i < want.size(); ++i) {
    for (std::int64_t k = 0; k < want[i].elements(); ++k) {
      if (near_enough(got[i].element(k), want[i].element(k), numerics, largest)) continue;
      return "output \"" + source.outputs()[i].name + "\": found " + got[i].element(k).to_string() +
             ", expected " + want[i].element(k).to_string() + " within " + numerics.to_string();
    }
  }
  return std::nullopt;
}

// Random inputs, of which one element each is a special value: all of them in turn, or the others
// would hide behind NaN wherever elements are added up.
std::vector<Tensor> planted_inputs(const Program& program, std::size_t turn) {
  std::vector<Tensor> inputs = testing::draw_inputs(program, testing::Draw::mixed, turn);
  for (Tensor& input : inputs) {
    if (input.elements() == 0) continue;
    const std::span<const Literal> values = testing::special_values(input.dtype());
    const Literal& value = values[turn % values.size()];
    dispatch(input.dtype(), [&]<class T>(std::type_identity<T>) {
      const std::span<T> elements = input.data<T>();
      elements[turn % elements.size()] = value.as<T>();
    });
  }
  return inputs;
}

Fault meaning_fault(const Program& source, const Program& result, const Numerics& numerics) {
  if (!is_small(source)) return std::nullopt;
  if (!is_small(result)) return "found a value of more than 100000 elements, or of symbolic size";
  std::vector<std::vector<Tensor>> draws;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto draw = seed % 2 == 0 ? testing::Draw::mixed : testing::Draw::positive;
    draws.push_back(testing::draw_inputs(source, draw, seed));
  }
  draws.push_back(testing::special_inputs(source, numerics));
  std::size_t special_values = 0;
  for (const Input& input : source.inputs()) {
    special_values = std::max(special_values, testing::special_values(input.type.dtype).size());
  }
  for (std::size_t i = 0; i < special_values; ++i) draws.push_back(planted_inputs(source, i));
  try {
    for (const std::vector<Tensor>& inputs : draws) {
      if (Fault found = value_fault(source, result, numerics, inputs)) return found;
    }
  } catch (const Error& error) {
    return "the program cannot be run: " + std::string(error.what());
  }
  return std::nullopt;
}

Fault fault_of_error(const Case& asked, const Reply& reply, Level level) {
  if (reply.code != 0) {
    if (level == Level::exact && reply.errors.find(asked.category) == std::string::npos) {
      return "found the error \"" + first_line(reply.errors) + "\", expected " + asked.category;
    }
    return std::nullopt;
  }
  if (level == Level::exact) return "found exit code 0, expected the error " + asked.category;
  if (trimmed(reply.output) == trimmed(asked.program)) return std::nullopt;
  const Fault other = "found exit code 0 and another program, expected an error or no change";
  if (asked.by == RefusedBy::reader) return other;
  try {
    if (same_program(parse(reply.output), parse(asked.program))) return std::nullopt;
  } catch (const Error&) {
    // Not our program, then.
  }
  return other;
}

Fault fault_of_program(const Case& asked, const Program& result, Level level) {
  const Program source = parse(asked.program, {asked.file.string(), {}});
  const bool changed = !same_program(source, result);
  if (asked.expect == Expect::unchanged) {
    if (!changed) return std::nullopt;
    return "found a changed program, expected no change";
  }
  if (!changed) return "found no change, expected a rewritten program";
  if (Fault found = interface_fault(source, result)) return found;
  if (Fault found = structure_fault(asked, result)) return found;
  if (Fault found = meaning_fault(source, result, asked.numerics)) return found;
  if (level == Level::exact && !same_program(parse(asked.rewritten), result)) {
    return "found another region than the expected one";
  }
  return std::nullopt;
}

}  // namespace

Fault fault(const Case& asked, const Reply& reply, Level level) {
  if (Fault found = bad_ending(reply)) return found;
  if (asked.expect == Expect::error) return fault_of_error(asked, reply, level);
  if (reply.code != 0) {
    return "exit code " + std::to_string(reply.code) + ": " + first_line(reply.errors);
  }
  std::optional<Program> result;
  try {
    result = parse(reply.output, {"output", {}});
  } catch (const Error& error) {
    return "the output cannot be read: " + std::string(error.what());
  }
  return fault_of_program(asked, *result, level);
}

}  // namespace mulgrad::matcher
