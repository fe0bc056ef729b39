// What a model trains: named, typed parameters with a way to start.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace mulgrad {

// How a parameter's elements start. Elements are drawn row-major as f64 and rounded once to the
// parameter's dtype, so one seed starts a network alike in every dtype.
class Initializer {
 public:
  static Initializer zeros() { return constant(0); }
  static Initializer constant(double value) { return {Kind::constant, value}; }
  // Uniform from -bound up to bound: bound * (2 u - 1), u in [0, 1).
  static Initializer uniform(double bound);
  // Normal around 0: deviation * RandomStream::normal().
  static Initializer normal(double deviation);
  // normal(sqrt(2 / fan_in)): He et al., "Delving deep into rectifiers" (ICCV 2015).
  static Initializer he_normal(std::int64_t fan_in);
  // uniform(sqrt(6 / (fan_in + fan_out))): Glorot and Bengio (AISTATS 2010).
  static Initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out);
  // All of them throw invalid_argument for a scale that is negative or no number, a fan below 1.

  // The elements of a tensor of a static type, drawn from a stream of the seed. Throws
  // unresolved_symbolic_shape, and dtype_mismatch where drawn numbers meet another dtype than
  // float.
  Tensor draw(const Type& type, std::uint64_t seed, std::uint64_t stream) const;

 private:
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Initializer(Kind kind, double scale) : kind_(kind), scale_(scale) {}
  static Initializer scaled(Kind kind, double scale);

  Kind kind_;
  double scale_;  // the constant, the bound, or the standard deviation
};

struct Parameter {
  std::string name;
  Type type;
  Initializer initializer;
};

// One tensor per parameter; parameter i is drawn from stream i of the seed.
std::vector<Tensor> initialize(std::span<const Parameter> parameters, std::uint64_t seed);

}  // namespace mulgrad
