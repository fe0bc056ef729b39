// Every layer: its values and gradients against JAX, its gradients of both orders against finite
// differences, and the whole of it on every target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "autodiff/derive.h"
#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "lowering/coverage.h"
#include "lowering/pipeline.h"
#include "tests/support/golden.h"
#include "tests/support/gradient_check.h"

namespace mulgrad::testing {
namespace {

std::vector<std::int64_t> sizes_of(const nlohmann::json& golden) {
  return golden["sizes"].get<std::vector<std::int64_t>>();
}

Tensor tensor(const nlohmann::json& golden, DType dtype) {
  return Tensor::from_doubles(dtype, sizes_of(golden), golden["values"].get<std::vector<double>>());
}

// The uniform numbers of a step are f32, what counts is i32, the rest f64.
DType dtype_of_input(const std::string& name, const nlohmann::json& golden) {
  if (name.starts_with("uniform")) return DType::f32;
  return golden["values"][0].is_number_integer() ? DType::i32 : DType::f64;
}

enum class Uniform : std::uint8_t { input, constant };

// A traced case: the program x, ... -> y, and its inputs by name.
struct Traced {
  Program program;
  std::vector<Tensor> inputs;
  std::vector<std::string> differentiable;
};

using Emit = std::function<Var(Tape&, Var, const LayerContext&)>;

struct Case {
  std::string name;
  Emit emit;
  Mode mode = Mode::evaluate;
  int order = 2;  // of the comparison with finite differences
};

template <class L>
Case of(std::string name, L layer, Mode mode = Mode::evaluate, int order = 2) {
  return {std::move(name),
          [layer = std::move(layer)](Tape& tape, Var x, const LayerContext& context) {
            std::vector<Var> parameters;
            for (const Parameter& parameter : layer.parameters()) {
              parameters.push_back(tape.input(parameter.name, parameter.type));
            }
            return layer.forward(x, parameters, context);
          },
          mode, order};
}

const std::vector<Case>& cases() {
  constexpr DType f64 = DType::f64;
  constexpr AttentionMask all = AttentionMask::none;
  constexpr AttentionMask causal = AttentionMask::causal;
  static const std::vector<Case> table{
      of("linear", Linear(4, 5, f64)),
      of("relu", ReLU()),
      of("tanh", TanH()),
      of("sigmoid", Sigmoid()),
      of("gelu", GELU()),
      of("gelu_tanh", GELU(GeluForm::tanh)),
      of("dropout", Dropout(0.25), Mode::train),
      of("layer_norm", LayerNorm(5, 1e-5, f64)),
      of("rms_norm", RmsNorm(5, 1e-5, f64)),
      of("embedding", Embedding(7, 4, f64)),
      of("position_embedding", PositionEmbedding(3, 4, f64)),
      of("attention", MultiHeadAttention(6, 3, all, 0, f64), Mode::evaluate, 1),
      of("attention_causal", MultiHeadAttention(6, 2, causal, 0, f64), Mode::evaluate, 1),
      of("attention_padded", MultiHeadAttention(4, 2, all, 0, f64), Mode::evaluate, 1),
      of("attention_causal_padded", MultiHeadAttention(4, 2, causal, 0, f64)),
      of("attention_dropout", MultiHeadAttention(4, 2, all, 0.5, f64), Mode::train, 1),
      of("residual", Residual(Linear(4, 4, f64))),
      of("transformer_block", transformer_block(4, 2, causal, 0, f64), Mode::train, 1),
      {"sequence_cross_entropy", [](Tape& tape, Var x, const LayerContext&) {
         const Shape shape = x.shape();
         const Var labels = tape.input("labels", {DType::i32, {shape[0], shape[1]}});
         return softmax_cross_entropy(x, labels);
       }}};
  return table;
}

// The goldens by name.
const std::map<std::string, nlohmann::json>& goldens() {
  static const std::map<std::string, nlohmann::json> table = [] {
    std::map<std::string, nlohmann::json> result;
    const nlohmann::json file = read_golden("layers.json");
    for (const auto& golden : file["cases"]) {
      result.emplace(golden["name"].get<std::string>(), golden);
    }
    return result;
  }();
  return table;
}

Traced trace(const Case& c, Uniform uniform) {
  const nlohmann::json& golden = goldens().at(c.name);
  const auto value = [&](const std::string& name) {
    const nlohmann::json& described = golden["inputs"].at(name);
    return tensor(described, dtype_of_input(name, described));
  };
  Tape tape;
  int uniforms = 0;
  LayerContext context{c.mode};
  context.uniform = [&](const Shape& shape) {
    const std::string name = "uniform" + std::to_string(uniforms++);
    if (uniform == Uniform::constant) return constant(tape.builder(), value(name));
    return tape.input(name, {DType::f32, shape});
  };
  const Var x = tape.input("x", value("x").type());
  if (golden["inputs"].contains("padding")) {
    context.padding = tape.input("padding", value("padding").type());
  }
  tape.output("y", c.emit(tape, x, context));
  Traced result{tape.finish(), {}, {}};
  for (const Input& input : result.program.inputs()) {
    result.inputs.push_back(value(input.name));
    EXPECT_EQ(result.inputs.back().type(), input.type) << input.name;
    if (input.type.dtype == DType::f64) result.differentiable.push_back(input.name);
  }
  return result;
}

// Within rounding of the golden: 1e-12 of its largest element, or of 1 (a key's bias takes no
// gradient at all).
void expect_near(const Tensor& found, const nlohmann::json& golden, const std::string& name) {
  const Tensor want = tensor(golden, DType::f64);
  ASSERT_EQ(found.type(), want.type()) << name;
  double largest = 1;
  for (const double value : want.data<double>()) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < want.data<double>().size(); ++i) {
    EXPECT_NEAR(found.data<double>()[i], want.data<double>()[i], 1e-12 * largest)
        << name << ", element " << i;
  }
}

// Compares y and the gradients with the golden.
void expect_golden(const Case& c, const Traced& traced, const Derivative& derivative) {
  const nlohmann::json& golden = goldens().at(c.name);
  expect_near(interpret(derivative.forward, traced.inputs)[0], golden["y"], "y");
  const Tensor seed = tensor(golden["dy"], DType::f64);
  const std::vector<Tensor> gradients = gradients_of(derivative, traced.inputs, {&seed, 1});
  ASSERT_EQ(gradients.size(), golden["gradients"].size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string& name = traced.differentiable[i];
    expect_near(gradients[i], golden["gradients"].at(name), name);
  }
}

TEST(EveryLayer, Goldens_AreOnePerCase) {
  EXPECT_EQ(goldens().size(), cases().size());
  for (const Case& c : cases()) EXPECT_TRUE(goldens().contains(c.name)) << c.name;
}

TEST(EveryLayer, ValuesAndGradients_MatchJax) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Traced traced = trace(c, Uniform::input);
    expect_golden(c, traced, derive(traced.program, {"y"}, traced.differentiable));
  }
}

TEST(EveryLayer, Gradients_AgreeWithFiniteDifferences) {
  for (const Case& c : cases()) {
    const Traced traced = trace(c, Uniform::constant);
    EXPECT_TRUE(check_gradients(traced.program, traced.inputs, c.order)) << c.name;
  }
}

// The seed and captures of a step's own: nothing but floats passes between its programs.
TEST(EveryLayer, Captures_AreFloats) {
  for (const Case& c : cases()) {
    const Traced traced = trace(c, Uniform::input);
    const Derivative derivative = derive(traced.program, {"y"}, traced.differentiable);
    for (const Input& input : derivative.derivative.inputs()) {
      EXPECT_TRUE(is_float(input.type.dtype)) << c.name << " " << input.name;
    }
  }
}

struct OnTarget {
  Derivative programs;
  std::vector<Refusal> refusals;
};

OnTarget on(const Target& target, Derivative programs) {
  std::vector<CoverageArtifact> artifacts;
  const auto rewrite = [&](const char* name, Program& program, Slot slot) {
    artifacts.push_back({Artifact::untouched(name, program), {}});
    PipelineResult result = run_passes(program, slot, default_pipeline(target, slot));
    artifacts.back().artifact.program = result.program;
    artifacts.back().passes = std::move(result.passes);
    program = std::move(result.program);
  };
  rewrite("forward", programs.forward, Slot::forward);
  rewrite("derivative", programs.derivative, Slot::derivative);
  return {std::move(programs), coverage(artifacts, target).unsupported};
}

TEST(EveryLayer, OnEveryTarget_IsCoveredAndComputesTheSame) {
  for (const Target& target : built_in_targets()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(target.name() + " " + c.name);
      const Traced traced = trace(c, Uniform::input);
      const OnTarget result = on(target, derive(traced.program, {"y"}, traced.differentiable));
      for (const Refusal& refusal : result.refusals) {
        ADD_FAILURE() << refusal.label << ": " << refusal.reason;
      }
      expect_golden(c, traced, result.programs);
    }
  }
}

// In the first sequence of the case no key is left: y is the bias of the last projection, and x has
// no part in it. Exactly so, whatever x holds.
TEST(MultiHeadAttention, QueryWithoutKeys_GivesAndGetsExactlyNothing) {
  const Case& c = *std::ranges::find(cases(), "attention_padded", &Case::name);
  for (const Target& target : built_in_targets()) {
    SCOPED_TRACE(target.name());
    Traced traced = trace(c, Uniform::input);
    const auto input = [&](const char* name) -> Tensor& {
      return traced.inputs[static_cast<std::size_t>(traced.program.find_input(name))];
    };
    for (int i = 0; i < 12; ++i) input("x").data<double>()[static_cast<std::size_t>(i)] *= 1e150;
    const Derivative programs = on(target, derive(traced.program, {"y"}, {"x"})).programs;
    const Tensor y = interpret(programs.forward, traced.inputs)[0];
    const Tensor seed = Tensor::filled(Literal::one(DType::f64), {2, 3, 4});
    const Tensor gradient = gradients_of(programs, traced.inputs, {&seed, 1})[0];
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(y.data<double>()[i], input("output.bias").data<double>()[i % 4]);
      EXPECT_EQ(gradient.data<double>()[i], 0);
    }
  }
}

}  // namespace
}  // namespace mulgrad::testing
