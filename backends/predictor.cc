#include "backends/predictor.h"

#include <utility>
#include <vector>

#include "backends/checkpoint.h"
#include "backends/dataset.h"
#include "backends/row_parts.h"
#include "core/text.h"
#include "lowering/pipeline.h"

namespace mulgrad {

struct Predictor::Impl {
  CpuFunction function;
  std::vector<Tensor> parameters;  // in the order of the function's inputs
};

Tensor predict_in_parts(CpuFunction& function, std::vector<Tensor> parameters,
                        const Tensor& inputs) {
  if (inputs.rank() == 0) {
    throw Error(Category::shape_mismatch,
                "found a tensor of rank 0, expected a first axis of rows");
  }
  std::vector<Tensor> arguments = std::move(parameters);
  arguments.emplace_back();
  std::vector<Tensor> parts;
  in_parts(inputs.sizes()[0], kRowsPerRun, [&](std::span<const std::int64_t> rows) {
    arguments.back() = take_rows(inputs, rows);
    parts.push_back(std::move(function.run(arguments)[0]));
  });
  if (parts.size() == 1) return std::move(parts[0]);
  std::vector<std::int64_t> sizes(parts[0].sizes().begin(), parts[0].sizes().end());
  sizes[0] = inputs.sizes()[0];
  Tensor result(parts[0].dtype(), std::move(sizes));
  auto out = result.bytes().begin();
  for (const Tensor& part : parts) out = std::ranges::copy(part.bytes(), out).out;
  return result;
}

Predictor::Predictor(const std::string& checkpoint, const Target& target,
                     const CustomRegistry& customs) {
  Checkpoint content = read_checkpoint(checkpoint);
  const auto fail = [&](const std::string& message) {
    throw Error(Category::invalid_data, message, {}, checkpoint);
  };
  if (content.program.empty()) {
    fail("the checkpoint holds no program: its trainer had seen no data");
  }
  Program program = [&] {
    try {
      return parse(content.program, {checkpoint + ":program", customs});
    } catch (const Error& error) {
      throw Error(Category::invalid_data, error.message(), error.node(), error.location());
    }
  }();
  std::vector<Tensor> parameters;
  const std::span<const Input> inputs = program.inputs();
  if (inputs.size() != content.parameters.size() + 1 || program.outputs().empty()) {
    fail("found a program of " + std::to_string(inputs.size()) + " inputs and " +
         std::to_string(program.outputs().size()) + " outputs, expected one that takes the " +
         std::to_string(content.parameters.size()) + " parameters and rows");
  }
  for (const Input& input : inputs.first(inputs.size() - 1)) {
    const auto found = std::ranges::find(content.parameters, input.name, &NamedTensor::name);
    if (found == content.parameters.end() || !(found->tensor.type() == input.type)) {
      fail("the program takes \"" + input.name + "\", " + input.type.to_string() +
           ", which is no parameter of that type");
    }
    parameters.push_back(found->tensor);
  }
  impl_ = std::make_unique<Impl>(
      Impl{{std::move(program), target, default_pipeline(target, Slot::forward)},
           std::move(parameters)});
}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Tensor Predictor::predict(const Tensor& inputs) {
  return predict_in_parts(impl_->function, impl_->parameters, inputs);
}

}  // namespace mulgrad
