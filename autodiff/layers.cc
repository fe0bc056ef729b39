#include "autodiff/layers.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace mulgrad {

Var Layer::forward(Var x, std::span<const Var> parameters) const {
  const std::vector<Parameter> expected = this->parameters();
  if (parameters.size() != expected.size()) {
    throw Error(Category::invalid_argument, "forward: found " + std::to_string(parameters.size()) +
                                                " parameters, expected " +
                                                std::to_string(expected.size()));
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (parameters[i].type() == expected[i].type) continue;
    throw Error(Category::invalid_argument, "forward: found " + parameters[i].type().to_string() +
                                                " for parameter " + expected[i].name +
                                                ", expected " + expected[i].type.to_string());
  }
  return emit(x, parameters);
}

Linear::Linear(std::int64_t in, std::int64_t out, DType dtype) : in_(in), out_(out), dtype_(dtype) {
  if (in < 1 || out < 1) {
    throw Error(Category::invalid_argument, "Linear: found sizes " + std::to_string(in) + " and " +
                                                std::to_string(out) + ", expected >= 1");
  }
  if (!is_float(dtype)) {
    throw Error(Category::dtype_mismatch, "Linear: found dtype " + std::string(to_string(dtype)) +
                                              ", expected a float dtype");
  }
}

std::vector<Parameter> Linear::parameters() const {
  const Initializer start = Initializer::uniform(1 / std::sqrt(static_cast<double>(in_)));
  return {{"weight", {dtype_, {in_, out_}}, start}, {"bias", {dtype_, {1, out_}}, start}};
}

Var Linear::emit(Var x, std::span<const Var> parameters) const {
  if (x.rank() != 2) {
    throw Error(Category::shape_mismatch, "Linear: found an input of shape " +
                                              x.shape().to_string() + ", expected rank 2: [rows, " +
                                              std::to_string(in_) + "]");
  }
  return matmul(x, parameters[0]) + parameters[1];
}

Var ReLU::emit(Var x, std::span<const Var>) const { return maximum(x, 0); }

Sequential::Sequential(std::vector<std::shared_ptr<const Layer>> layers)
    : layers_(std::move(layers)) {
  if (std::find(layers_.begin(), layers_.end(), nullptr) != layers_.end()) {
    throw Error(Category::invalid_argument, "Sequential: found a null layer");
  }
}

std::vector<Parameter> Sequential::parameters() const {
  std::vector<Parameter> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (Parameter& parameter : layers_[i]->parameters()) {
      parameter.name = "layer" + std::to_string(i) + "." + parameter.name;
      all.push_back(std::move(parameter));
    }
  }
  return all;
}

Var Sequential::emit(Var x, std::span<const Var> parameters) const {
  for (const auto& layer : layers_) {
    const std::size_t count = layer->parameters().size();
    x = layer->forward(x, parameters.first(count));
    parameters = parameters.subspan(count);
  }
  return x;
}

}  // namespace mulgrad
