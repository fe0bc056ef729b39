// First and second derivatives of composite functions against tests/goldens/gradients.json, which
// tests/goldens/make_gradient_goldens.py computes with JAX.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "autodiff/losses.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "tests/support/golden.h"
#include "tests/support/gradient_check.h"
#include "tests/support/near.h"

namespace mulgrad::testing {
namespace {

using Vars = std::vector<Var>;
using Json = nlohmann::json;

Var row(Var v, const Shape& shape) { return broadcast_in_dim(v, shape, {shape.rank() - 1}); }

Var layer_norm(const Vars& x) {
  const Var centred = x[0] - mean(x[0], {1}, KeepDims::yes);
  const Var variance = mean(centred * centred, {1}, KeepDims::yes);
  const Shape shape = x[0].shape();
  return centred / sqrt(variance + 1e-5) * row(x[1], shape) + row(x[2], shape);
}

Var logsumexp(const Vars& x) {
  const Var scaled = x[0] * 3;
  const Var shift = stop_gradient(reduce(Reduction::max, scaled, {1}, KeepDims::yes));
  return log(sum(exp(scaled - shift), {1})) + reshape(shift, {4});
}

Var attention(const Vars& x) {
  const Var scores = dot_general(x[0], x[1], {{0}, {0}, {2}, {2}, DType::f64}) / 2;
  return dot_general(softmax(scores, -1), x[2], {{0}, {0}, {2}, {1}, DType::f64});
}

Var gelu(const Vars& x) { return x[0] * 0.5 * (erf(x[0] / std::sqrt(2.0)) + 1); }

Var mlp(const Vars& x) {
  const Var hidden = tanh(matmul(x[0], x[1]) + row(x[2], {3, 6}));
  const Var error = logistic(matmul(hidden, x[3])) - 0.5;
  return mean(pow(error, 2));
}

Var elementary(const Vars& v) {
  const Var x = v[0];
  const Var a = sin(x) * cos(x) + log1p(exp(x));
  const Var b = expm1(x) * rsqrt(x * x + 1) + abs(x) * sqrt(x * x + 2);
  return a / (b * b + 1) + log(x * x + 0.5);
}

Var extrema(const Vars& x) {
  const Var rows = reduce(Reduction::max, x[0], {1}) * reduce(Reduction::min, x[1], {1});
  const Var inner = clamp(-0.8, x[0] * x[1], 0.9) + maximum(x[0], x[1]) * minimum(x[0], 0.3);
  return sum(inner, {1}) + rows;
}

Var movement(const Vars& v) {
  const Var x = v[0];
  const Var y = v[1];
  const Var zero = fill(x.builder(), Literal::zero(DType::f64), {});
  const Var both = slice(concatenate(Vars{x, transpose(y)}, 0), {1, 0}, {5, 3}, {2, 1});
  const Var padded = pad(both, zero, {1, -1}, {0, 2}, {1, 0});
  const Var corner = slice(y, {0, 0}, {1, 1});
  const Var tail = slice(reshape(y, {1, 9}), {0, 5}, {1, 9});
  return padded * broadcast_in_dim(corner, {4, 4}, {0, 1}) + pow(tail, 2);
}

const std::map<std::string, std::function<Var(const Vars&)>>& functions() {
  static const std::map<std::string, std::function<Var(const Vars&)>> kFunctions = {
      {"softmax_cross_entropy", [](const Vars& x) { return softmax_cross_entropy(x[0], x[1]); }},
      {"layer_norm", layer_norm},
      {"logsumexp", logsumexp},
      {"norm", [](const Vars& x) { return sqrt(sum(x[0] * x[0])); }},
      {"attention", attention},
      {"product_with_a_zero", [](const Vars& x) { return reduce(Reduction::product, x[0], {1}); }},
      {"power", [](const Vars& x) { return pow(x[0], x[1]); }},
      {"gelu", gelu},
      {"mlp", mlp},
      {"elementary", elementary},
      {"extrema", extrema},
      {"contraction",
       [](const Vars& x) {
         return dot_general(x[0], x[1], {{2}, {1}, {0, 3}, {2, 0}, DType::f64});
       }},
      {"movement", movement},
  };
  return kFunctions;
}

Tensor read_tensor(const Json& json) {
  const Json& values = json.at("values");
  const bool whole = !values.empty() && values[0].is_number_integer();
  return Tensor::from_doubles(whole ? DType::i32 : DType::f64, json.at("sizes"),
                              values.get<std::vector<double>>());
}

std::vector<Tensor> read_tensors(const Json& json) {
  std::vector<Tensor> tensors;
  for (const Json& each : json) tensors.push_back(read_tensor(each));
  return tensors;
}

void expect_near(std::span<const Tensor> found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(near(found[i], expected[i],
                     {.relative = 1e-13, .of_largest = 1e-13, .zero_sign = ZeroSign::free}));
  }
}

TEST(GradientGoldens, EveryFunction_AgreesWithJaxToSecondOrder) {
  const Json goldens = read_golden("gradients.json");
  ASSERT_EQ(goldens.size(), functions().size() + 1);  // and the name of the generator
  for (const auto& [name, function] : functions()) {
    SCOPED_TRACE(name);
    const Json& golden = goldens.at(name);
    std::vector<Tensor> inputs = read_tensors(golden.at("inputs"));
    Tape tape;
    Vars x;
    std::vector<ValueId> wrt;
    for (const Tensor& input : inputs) {
      x.push_back(tape.input("x" + std::to_string(x.size()), input.type()));
      if (is_float(input.dtype())) wrt.push_back(x.back().id());
    }
    tape.output("y", function(x));
    const std::int64_t y = 0;
    const Derivative first = derive(tape.finish(), {&y, 1}, wrt);
    const Tensor cotangent = read_tensor(golden.at("cotangent"));
    const auto gradients = gradients_of(first, inputs, {&cotangent, 1});
    expect_near({&interpret(first.forward, inputs)[0], 1}, {read_tensor(golden.at("output"))});
    expect_near(gradients, read_tensors(golden.at("gradients")));

    // The gradients are the outputs behind y; their seeds are the directions.
    std::vector<std::int64_t> outputs;
    for (std::size_t i = 0; i < wrt.size(); ++i)
      outputs.push_back(static_cast<std::int64_t>(i) + 1);
    const Derivative second = derive(join(first), outputs, wrt, {Unused::zero});
    inputs.push_back(cotangent);
    expect_near(gradients_of(second, inputs, read_tensors(golden.at("directions"))),
                read_tensors(golden.at("second")));
  }
}

}  // namespace
}  // namespace mulgrad::testing
