#include "examples/mulgrad/commands.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "autodiff/derive.h"
#include "autodiff/link.h"
#include "core/builder.h"
#include "core/rewrite/pass_manager.h"
#include "core/text_places.h"
#include "lowering/coverage.h"
#include "lowering/pipeline.h"

namespace mulgrad::command {
namespace {

std::string read_text(const std::string& file) {
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  std::istream& stream = file == "-" ? std::cin : opened;
  std::string text;
  char buffer[1 << 16];
  do {
    stream.read(buffer, sizeof buffer);
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
  } while (stream);
  // The end leaves eof and no other trouble; a folder can be opened, but not read.
  if (stream.bad() || !stream.eof()) throw Error(Category::io_error, "cannot read the file");
  return text;
}

// The node that a text starts with: 7 for "%7 stablehlo.add"; -1 where it starts with none.
std::int64_t leading_node(std::string_view text) {
  std::int64_t node = -1;
  if (text.starts_with('%')) std::from_chars(text.data() + 1, text.data() + text.size(), node);
  return node;
}

// The node of the file that a node of a program made of it came from, or -1.
std::int64_t origin_of(const Program& current, std::int64_t node) {
  if (node < 0 || node >= std::ssize(current.nodes())) return -1;
  return current.origins()[static_cast<std::size_t>(node)];
}

// A text about `current` with its nodes, "%7", numbered as in the file.
std::string numbered_as_in_file(const Program& current, std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::int64_t origin = origin_of(current, leading_node(text));
    if (origin < 0) {
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    result += "%" + std::to_string(origin);
    text.remove_prefix(std::min(text.find_first_not_of("0123456789", 1), text.size()));
  }
  return result;
}

// The program in the file, and the way from its nodes back to the text.
class SourceText {
 public:
  explicit SourceText(const Source& source) : file_(source.file == "-" ? "<stdin>" : source.file) {
    try {
      text_ = read_text(source.file);
      placed_ = parse_with_places(text_, {file_, {}});
      placed_.program = placed_.program.with_fresh_origins();
      if (source.bindings.empty()) return;
      // Binding keeps the nodes and their order.
      placed_.program = mulgrad::bind(placed_.program, source.bindings).with_fresh_origins();
    } catch (const Error& error) {
      throw located(placed_.program, error);
    }
  }

  const Program& program() const { return placed_.program; }

  // An error about a program made of this one, with its place: where the node that it names stands
  // in the file, if it came from there.
  Error located(const Program& current, const Error& error) const {
    if (!error.location().empty()) return error;
    const std::int64_t origin = origin_of(current, leading_node(error.node()));
    if (origin < 0) return error.at_location(file_);
    const std::size_t offset = placed_.offsets[static_cast<std::size_t>(origin)];
    return Error(error.category(), numbered_as_in_file(current, error.message()),
                 numbered_as_in_file(current, error.node()), file_ + ":" + place_in(text_, offset));
  }

 private:
  std::string file_;
  std::string text_;
  PlacedProgram placed_;
};

// Runs a command on the program; what it throws without a place is placed in the file.
void with_program(const Source& source, const auto& run) {
  const SourceText text(source);
  try {
    run(text.program());
  } catch (const Error& error) {
    throw text.located(text.program(), error);
  }
}

std::vector<std::int64_t> float_outputs(const Program& program) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < std::ssize(program.outputs()); ++i) {
    const Output& output = program.outputs()[static_cast<std::size_t>(i)];
    if (output.role == OutputRole::output && is_float(program.type(output.value).dtype)) {
      indices.push_back(i);
    }
  }
  if (indices.empty()) {
    throw Error(Category::invalid_selected_output,
                "found no output of a float dtype, expected one to derive");
  }
  return indices;
}

std::vector<std::int64_t> float_inputs(const Program& program) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < std::ssize(program.inputs()); ++i) {
    if (is_float(program.type(ValueId::input(i)).dtype)) indices.push_back(i);
  }
  if (indices.empty()) {
    throw Error(Category::invalid_argument,
                "found no input of a float dtype, expected one to derive with respect to");
  }
  return indices;
}

std::vector<ValueId> as_inputs(const Program& program, std::span<const std::int64_t> indices) {
  std::vector<ValueId> values;
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= std::ssize(program.inputs())) {
      throw Error(Category::invalid_argument, "found input " + std::to_string(index) +
                                                  " to derive with respect to in a program of " +
                                                  std::to_string(program.inputs().size()) +
                                                  " inputs");
    }
    values.push_back(ValueId::input(index));
  }
  return values;
}

// The joined derivative under the names that the command promises. One that is taken, as in the
// derivative of a derivative, gets an underscore.
Program named_join(const Derivative& derivative, std::span<const std::int64_t> derived,
                   std::span<const std::int64_t> wrt) {
  const Program joined = join(derivative);
  const std::size_t inputs = joined.inputs().size() - derived.size();
  const std::size_t outputs = joined.outputs().size() - wrt.size();
  const auto fresh = [](std::string name, std::set<std::string>& used) {
    while (!used.insert(name).second) name += "_";
    return name;
  };
  Builder builder(joined.name());
  std::set<std::string> used;
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < joined.inputs().size(); ++i) {
    const Input& input = joined.inputs()[i];
    const std::string name = i < inputs ? input.name : "ct" + std::to_string(derived[i - inputs]);
    values.push_back(builder.input(fresh(name, used), input.type, input.role));
  }
  values = append(builder, joined, values);
  used.clear();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Output& output = joined.outputs()[i];
    const std::string name =
        i < outputs ? output.name : "grad_arg" + std::to_string(wrt[i - outputs]);
    builder.output(fresh(name, used), values[i], output.role);
  }
  return builder.finish();
}

bool has_seeds(const Program& program) {
  return std::ranges::any_of(program.inputs(),
                             [](const Input& input) { return input.role == InputRole::seed; });
}

CoverageArtifact lower(const Program& program, Slot slot, const Target& target) {
  PipelineResult lowered = run_passes(program, slot, default_pipeline(target, slot));
  return {{std::string(to_string(slot)), program.with_fresh_origins(), std::move(lowered.program)},
          std::move(lowered.passes),
          1};
}

}  // namespace

void print(const Source& source, Result& result) {
  with_program(source, [&](const Program& program) { result.output = mulgrad::print(program); });
}

void opt(const Source& source, const std::vector<Pass>& passes, Explain explain, Result& result) {
  const SourceText text(source);
  Program program = text.program();
  try {
    for (const Pass& pass : passes) {
      if (explain == Explain::yes && pass.explain) {
        for (const std::string& line : pass.explain(program)) {
          result.notes += numbered_as_in_file(program, line) + "\n";
        }
      }
      program = pass.run(program).program;
      verify(program);
    }
  } catch (const Error& error) {
    throw text.located(program, error);
  }
  result.output = mulgrad::print(program);
}

void grad(const Source& source, const std::vector<std::int64_t>& wrt, GradForm form,
          Result& result) {
  with_program(source, [&](const Program& program) {
    const std::vector<std::int64_t> outputs = float_outputs(program);
    const std::vector<std::int64_t> indices = wrt.empty() ? float_inputs(program) : wrt;
    const Derivative derivative = derive(program, outputs, as_inputs(program, indices));
    if (form == GradForm::split) {
      result.output = mulgrad::print(derivative.forward) + mulgrad::print(derivative.derivative);
      return;
    }
    result.output = mulgrad::print(named_join(derivative, outputs, indices));
  });
}

void coverage(const Source& source, const Target& target, CoverageOf what, Format format,
              Result& result) {
  with_program(source, [&](const Program& program) {
    const Slot slot = has_seeds(program) ? Slot::derivative : Slot::forward;
    std::vector<CoverageArtifact> artifacts;
    if (what == CoverageOf::program) {
      artifacts.push_back(lower(program, slot, target));
    } else {
      const std::vector<std::int64_t> inputs = float_inputs(program);
      const Derivative derivative = derive(program, float_outputs(program),
                                           as_inputs(program, inputs), {.unused = Unused::zero});
      artifacts.push_back(lower(derivative.forward, Slot::forward, target));
      artifacts.push_back(lower(derivative.derivative, Slot::derivative, target));
    }
    const Coverage found = mulgrad::coverage(artifacts, target);
    result.output = format == Format::json ? found.json() : found.print();
    if (!found.unsupported.empty()) result.exit_code = kNotCovered;
  });
}

}  // namespace mulgrad::command
