#include "backends/predictor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backends/checkpoint.h"
#include "backends/row_parts.h"
#include "core/text.h"
#include "lowering/pipeline.h"

namespace mulgrad {

struct Predictor::Impl {
  CpuFunction function;
  std::vector<Tensor> parameters;  // in the order of the function's inputs
  std::optional<std::int64_t> ids;
};

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
           std::move(parameters),
           content.ids});
}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Tensor Predictor::predict(const Tensor& inputs) {
  expect_ids(inputs, impl_->ids);
  return predict_in_parts(impl_->function, impl_->parameters, inputs);
}

}  // namespace mulgrad
