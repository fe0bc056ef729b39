#include "tests/support/gradient_check.h"

#include <cmath>
#include <map>
#include <string>

#include "core/interpreter.h"

namespace mulgrad::testing {
namespace {

// Distinct, of both signs, and none near 0.
Tensor weights_for(const Type& type, double& phase) {
  Tensor weights(type.dtype, type.shape.sizes());
  for (double& weight : weights.data<double>()) {
    phase += 1;
    weight = std::sin(phase) + (std::sin(phase) < 0 ? -0.5 : 0.5);
  }
  return weights;
}

double weighted_sum(const Program& program, std::span<const Tensor> inputs,
                    const std::vector<std::int64_t>& outputs, std::span<const Tensor> weights) {
  const std::vector<Tensor> results = interpret(program, inputs);
  double total = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto values = results[static_cast<std::size_t>(outputs[k])].data<double>();
    for (std::size_t i = 0; i < values.size(); ++i)
      total += values[i] * weights[k].data<double>()[i];
  }
  return total;
}

}  // namespace

std::vector<Tensor> gradients_of(const Derivative& derivative, std::span<const Tensor> inputs,
                                 std::span<const Tensor> seeds) {
  const std::vector<Tensor> results = interpret(derivative.forward, inputs);
  std::map<std::string, Tensor> captures;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Output& output = derivative.forward.outputs()[i];
    if (output.role == OutputRole::capture) captures.emplace(output.name, results[i]);
  }
  std::vector<Tensor> arguments;
  std::size_t seed = 0;
  for (const Input& input : derivative.derivative.inputs()) {
    const bool is_capture = input.role == InputRole::capture;
    arguments.push_back(is_capture ? captures.at(input.name) : seeds[seed++]);
  }
  return interpret(derivative.derivative, arguments);
}

std::vector<Tensor> gradients_of(const Derivative& derivative, std::span<const Tensor> inputs) {
  const Type& type = derivative.derivative.inputs()[0].type;
  const Tensor seed = Tensor::filled(Literal::one(type.dtype), type.shape.sizes());
  return gradients_of(derivative, inputs, {&seed, 1});
}

::testing::AssertionResult check_gradients(const Program& original, std::vector<Tensor> inputs,
                                           int order, double relative) {
  Program program = original;
  std::vector<std::int64_t> outputs;
  for (std::int64_t i = 0; i < std::ssize(program.outputs()); ++i) {
    if (is_float(program.type(program.outputs()[static_cast<std::size_t>(i)].value).dtype)) {
      outputs.push_back(i);
    }
  }
  double phase = 0;
  for (int level = 1; level <= order; ++level) {
    std::vector<ValueId> wrt;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_float(inputs[i].dtype())) wrt.push_back(ValueId::input(static_cast<std::int64_t>(i)));
    }
    const Derivative derivative = derive(program, outputs, wrt, {Unused::zero});
    std::vector<Tensor> seeds;
    for (const std::int64_t output : outputs) {
      const ValueId value = program.outputs()[static_cast<std::size_t>(output)].value;
      seeds.push_back(weights_for(program.type(value), phase));
    }
    const std::vector<Tensor> gradients = gradients_of(derivative, inputs, seeds);
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      Tensor& input = inputs[static_cast<std::size_t>(wrt[k].index())];
      std::vector<double> differences;
      double largest = 1;
      for (double& element : input.data<double>()) {
        const double x = element;
        const double h = 1e-4;
        const auto at = [&](double step) {
          element = x + step;
          return weighted_sum(program, inputs, outputs, seeds);
        };
        // Fourth order: (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h
        const double near = at(h) - at(-h);
        const double far = at(2 * h) - at(-2 * h);
        element = x;
        differences.push_back((8 * near - far) / (12 * h));
        largest = std::max(largest, std::abs(differences.back()));
      }
      const std::vector<double> found = gradients[k].to_doubles();
      if (!(gradients[k].type() == input.type())) {
        return ::testing::AssertionFailure()
               << "gradient of type " << gradients[k].type().to_string();
      }
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::abs(found[i] - differences[i]) <= relative * largest) continue;
        return ::testing::AssertionFailure()
               << "order " << level << ", " << program.describe(wrt[k]) << ", element " << i
               << ": found " << found[i] << ", central difference " << differences[i];
      }
    }
    if (level == order) break;
    const auto before = static_cast<std::int64_t>(program.outputs().size());
    program = join(derivative);
    outputs.clear();
    for (std::int64_t i = before; i < std::ssize(program.outputs()); ++i) outputs.push_back(i);
    inputs.insert(inputs.end(), seeds.begin(), seeds.end());
  }
  return ::testing::AssertionSuccess();
}

}  // namespace mulgrad::testing
