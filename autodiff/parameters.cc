#include "autodiff/parameters.h"

#include <cmath>

#include "autodiff/random.h"

namespace mulgrad {
namespace {

double checked_fan(std::int64_t fan) {
  if (fan < 1) {
    throw Error(Category::invalid_argument,
                "Initializer: found a fan of " + std::to_string(fan) + ", expected >= 1");
  }
  return static_cast<double>(fan);
}

}  // namespace

Initializer Initializer::scaled(Kind kind, double scale) {
  if (!(scale >= 0) || std::isinf(scale)) {
    throw Error(Category::invalid_argument, "Initializer: found scale " + std::to_string(scale) +
                                                ", expected a finite number >= 0");
  }
  return {kind, scale};
}

Initializer Initializer::uniform(double bound) { return scaled(Kind::uniform, bound); }

Initializer Initializer::normal(double deviation) { return scaled(Kind::normal, deviation); }

Initializer Initializer::he_normal(std::int64_t fan_in) {
  return normal(std::sqrt(2 / checked_fan(fan_in)));
}

Initializer Initializer::xavier_uniform(std::int64_t fan_in, std::int64_t fan_out) {
  return uniform(std::sqrt(6 / (checked_fan(fan_in) + checked_fan(fan_out))));
}

Tensor Initializer::draw(const Type& type, std::uint64_t seed, std::uint64_t stream) const {
  if (kind_ == Kind::constant) {
    return Tensor::filled(Literal::from_double(type.dtype, scale_), type.shape.sizes());
  }
  if (!is_float(type.dtype)) {
    throw Error(Category::dtype_mismatch, "Initializer: found dtype " +
                                              std::string(to_string(type.dtype)) +
                                              " for drawn numbers, expected a float dtype");
  }
  RandomStream random(seed, stream);
  Tensor values(DType::f64, type.shape.sizes());
  for (double& value : values.data<double>()) {
    value = scale_ * (kind_ == Kind::uniform ? 2 * random.uniform_f64() - 1 : random.normal());
  }
  return Tensor::from_doubles(type.dtype, type.shape.sizes(), values.data<double>());
}

std::vector<Tensor> initialize(std::span<const Parameter> parameters, std::uint64_t seed) {
  std::vector<Tensor> tensors;
  tensors.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    tensors.push_back(parameter.initializer.draw(parameter.type, seed, tensors.size()));
  }
  return tensors;
}

}  // namespace mulgrad
