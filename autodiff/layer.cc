#include "autodiff/layer.h"

#include <algorithm>
#include <string>

namespace mulgrad {

Var Layer::forward(Var x, std::span<const Var> parameters, const LayerContext& context) const {
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
  return emit(x, parameters, context);
}

void expect_size(const char* layer, std::int64_t size) {
  if (size >= 1) return;
  throw Error(Category::invalid_argument,
              std::string(layer) + ": found the size " + std::to_string(size) + ", expected >= 1");
}

void expect_float(const char* layer, DType dtype) {
  if (is_float(dtype)) return;
  throw Error(Category::dtype_mismatch, std::string(layer) + ": found dtype " +
                                            std::string(to_string(dtype)) +
                                            ", expected a float dtype");
}

std::vector<Parameter> prefixed(const std::string& prefix, std::vector<Parameter> parameters) {
  for (Parameter& parameter : parameters) parameter.name = prefix + "." + parameter.name;
  return parameters;
}

std::vector<std::string> prefixed(const std::string& prefix, std::vector<std::string> lines) {
  for (std::string& line : lines) line = prefix + "." + line;
  return lines;
}

Sequential::Sequential(std::vector<std::shared_ptr<const Layer>> layers)
    : layers_(std::move(layers)) {
  if (std::find(layers_.begin(), layers_.end(), nullptr) != layers_.end()) {
    throw Error(Category::invalid_argument, "Sequential: found a null layer");
  }
}

std::vector<Parameter> Sequential::parameters() const {
  std::vector<Parameter> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (Parameter& parameter : prefixed("layer" + std::to_string(i), layers_[i]->parameters())) {
      all.push_back(std::move(parameter));
    }
  }
  return all;
}

std::optional<std::int64_t> Sequential::ids() const {
  return layers_.empty() ? std::nullopt : layers_.front()->ids();
}

std::vector<std::string> Sequential::description() const {
  if (layers_.empty()) return {"Sequential"};
  std::vector<std::string> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (std::string& line : prefixed("layer" + std::to_string(i), layers_[i]->description())) {
      all.push_back(std::move(line));
    }
  }
  return all;
}

Var Sequential::emit(Var x, std::span<const Var> parameters, const LayerContext& context) const {
  for (const auto& layer : layers_) {
    const std::size_t count = layer->parameters().size();
    x = layer->forward(x, parameters.first(count), context);
    parameters = parameters.subspan(count);
  }
  return x;
}

Var Residual::emit(Var x, std::span<const Var> parameters, const LayerContext& context) const {
  const Var y = layer_->forward(x, parameters, context);
  if (!(y.type() == x.type())) {
    throw Error(y.dtype() == x.dtype() ? Category::shape_mismatch : Category::dtype_mismatch,
                "Residual: found a layer from " + x.type().to_string() + " to " +
                    y.type().to_string() + ", expected the type of its input");
  }
  return x + y;
}

}  // namespace mulgrad
