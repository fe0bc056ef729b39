#include "examples/mulgrad/commands.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>
#include <span>
#include <utility>

#include "autodiff/derive.h"
#include "autodiff/link.h"
#include "core/builder.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/coverage.h"
#include "lowering/pipeline.h"

namespace mulgrad::command {
namespace {

std::string shown_name(const Source& source) {
  return source.file == "-" ? "<stdin>" : source.file;
}

std::string read_text(const Source& source) {
  std::ifstream opened;
  if (source.file != "-") opened.open(source.file, std::ios::binary);
  std::istream& stream = source.file == "-" ? std::cin : opened;
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

Program read(const Source& source) {
  const Program program = parse(read_text(source), {shown_name(source), {}});
  return source.bindings.empty() ? program : bind(program, source.bindings);
}

// Runs a command on the program; what it throws without a place is placed in the file.
void with_program(const Source& source, const auto& run) {
  try {
    run(read(source));
  } catch (const Error& error) {
    if (!error.location().empty()) throw;
    throw error.at_location(shown_name(source));
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
Program named_join(const Derivative& derivative, std::size_t inputs, std::size_t outputs,
                   std::span<const std::int64_t> wrt) {
  const Program joined = join(derivative);
  const auto fresh = [](std::string name, std::set<std::string>& used) {
    while (!used.insert(name).second) name += "_";
    return name;
  };
  Builder builder(joined.name());
  std::set<std::string> used;
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < joined.inputs().size(); ++i) {
    const Input& input = joined.inputs()[i];
    const std::string name = i < inputs ? input.name : "ct" + std::to_string(i - inputs);
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
  with_program(source, [&](Program program) {
    for (const Pass& pass : passes) {
      if (explain == Explain::yes && pass.explain) {
        for (const std::string& line : pass.explain(program)) result.notes += line + "\n";
      }
      program = pass.run(program).program;
      verify(program);
    }
    result.output = mulgrad::print(program);
  });
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
    const auto kept = std::ranges::count_if(
        program.outputs(), [](const Output& output) { return output.role == OutputRole::output; });
    result.output = mulgrad::print(
        named_join(derivative, program.inputs().size(), static_cast<std::size_t>(kept), indices));
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
