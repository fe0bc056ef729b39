#include "autodiff/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autodiff/random.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::throws;

const Dim kRows = Dim::symbol("B");

std::vector<Var> declare(Tape& tape, std::span<const Parameter> parameters) {
  std::vector<Var> vars;
  for (const Parameter& parameter : parameters) {
    vars.push_back(tape.input(parameter.name, parameter.type));
  }
  return vars;
}

// The program (x, parameters...) -> y of a layer.
Program trace(const Layer& layer, const Type& x_type) {
  Tape tape;
  const Var x = tape.input("x", x_type);
  const std::vector<Var> vars = declare(tape, layer.parameters());
  tape.output("y", layer.forward(x, vars));
  return tape.finish();
}

std::vector<std::string> names(const Layer& layer) {
  std::vector<std::string> result;
  for (const Parameter& parameter : layer.parameters()) result.push_back(parameter.name);
  return result;
}

TEST(Linear, Parameters_AreWeightAndRowOfBias) {
  const std::vector<Parameter> parameters = Linear(64, 10, DType::f64).parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "weight");
  EXPECT_EQ(parameters[0].type, (Type{DType::f64, {64, 10}}));
  EXPECT_EQ(parameters[1].name, "bias");
  EXPECT_EQ(parameters[1].type, (Type{DType::f64, {1, 10}}));
  EXPECT_EQ(Linear(64, 10).parameters()[0].type.dtype, DType::f32);
}

TEST(Linear, DefaultStart_IsUniformWithinTheRootOfTheFan) {
  const std::vector<Tensor> start = initialize(Linear(16, 3, DType::f64).parameters(), 5);
  for (std::uint64_t stream = 0; stream < 2; ++stream) {
    RandomStream random(5, stream);
    for (const double value : start[stream].data<double>()) {
      EXPECT_EQ(value, 0.25 * (2 * random.uniform_f64() - 1));
    }
  }
}

TEST(Linear, Forward_MultipliesAndAddsTheBiasToEveryRow) {
  const Program program = bind(trace(Linear(2, 3), {DType::f32, {kRows, 2}}), {{"B", 2}});
  const std::vector<Tensor> in = {Tensor::of<float>({2, 2}, {1, 2, 3, 4}),
                                  Tensor::of<float>({2, 3}, {1, 0, 2, 0, 1, 3}),
                                  Tensor::of<float>({1, 3}, {10, 20, 30})};
  EXPECT_EQ(interpret(program, in)[0], Tensor::of<float>({2, 3}, {11, 22, 38, 13, 24, 48}));
}

TEST(Linear, Forward_EmitsAPlainProductAndOneAdd) {
  const Program program = trace(Linear(2, 3), {DType::f32, {kRows, 2}});
  ASSERT_EQ(program.nodes().size(), 2u);
  EXPECT_EQ(program.nodes()[0].op, Op(DotGeneral{{}, {}, {1}, {0}, DType::f32}));
  EXPECT_EQ(program.nodes()[1].op, Op(Add{}));
  EXPECT_EQ(program.nodes()[1].type, (Type{DType::f32, {kRows, 3}}));
}

TEST(Linear, LeadingAxes_StayAroundOneProduct) {
  const Program program = trace(Linear(2, 3), {DType::f32, {kRows, 4, 2}});
  ASSERT_EQ(program.nodes().size(), 4u);
  EXPECT_EQ(program.nodes()[0].type, (Type{DType::f32, {kRows * 4, 2}}));
  EXPECT_EQ(program.nodes()[1].op, Op(DotGeneral{{}, {}, {1}, {0}, DType::f32}));
  EXPECT_EQ(program.nodes()[3].type, (Type{DType::f32, {kRows, 4, 3}}));
}

TEST(Linear, ArgumentOutOfItsDomain_Throws) {
  EXPECT_THAT([] { Linear(0, 3); },
              throws(Category::invalid_argument, "found the size 0, expected >= 1"));
  EXPECT_THAT([] { Linear(3, -1); }, throws(Category::invalid_argument, "found the size -1"));
  EXPECT_THAT([] { Linear(3, 3, DType::i32); },
              throws(Category::dtype_mismatch, "found dtype i32, expected a float dtype"));
}

TEST(Linear, UnfitInput_Throws) {
  EXPECT_THAT(
      [] {
        trace(Linear(2, 3), {DType::f32, {}});
      },
      throws(Category::shape_mismatch, "Linear: found an input of rank 0"));
  EXPECT_THAT(
      [] {
        trace(Linear(2, 3), {DType::f32, {5, 4}});
      },
      throws(Category::matmul_shape_mismatch, "found sizes 4 and 2"));
  EXPECT_THAT(
      [] {
        trace(Linear(2, 3), {DType::f64, {5, 2}});
      },
      throws(Category::dtype_mismatch, "f64 and f32"));
}

TEST(ReLU, Forward_IsTheLargerOfXAndZero) {
  const Program program = trace(ReLU(), {DType::f32, {5}});
  const float nan = std::nanf("");
  const Tensor y =
      interpret(program, std::vector{Tensor::of<float>({5}, {-2, 0, 3, -INFINITY, nan})})[0];
  EXPECT_THAT(y.to_doubles(), ElementsAre(0, 0, 3, 0, ::testing::IsNan()));
  EXPECT_EQ(program.nodes().size(), 1u);
}

TEST(Sequential, Parameters_AreNamedByPlace) {
  const Sequential net{Linear(64, 32), ReLU(), Sequential{Linear(32, 16)}, Linear(16, 10)};
  EXPECT_THAT(names(net), ElementsAre("layer0.weight", "layer0.bias", "layer2.layer0.weight",
                                      "layer2.layer0.bias", "layer3.weight", "layer3.bias"));
  EXPECT_EQ(net.parameters()[4].type, (Type{DType::f32, {16, 10}}));
}

TEST(Sequential, Forward_AppliesTheLayersInOrder) {
  const Sequential net{Linear(2, 2), ReLU(), Linear(2, 1)};
  const Program program = trace(net, {DType::f32, {2, 2}});
  const std::vector<Tensor> in = {
      Tensor::of<float>({2, 2}, {1, 2, 3, -4}), Tensor::of<float>({2, 2}, {1, 0, 0, 1}),
      Tensor::of<float>({1, 2}, {-2, 1}),       Tensor::of<float>({2, 1}, {10, 1}),
      Tensor::of<float>({1, 1}, {0.5}),
  };
  // relu([[-1, 3], [1, -3]]) = [[0, 3], [1, 0]]
  EXPECT_EQ(interpret(program, in)[0], Tensor::of<float>({2, 1}, {3.5, 10.5}));
}

TEST(Sequential, Copy_SharesItsLayersAndTracesTheSame) {
  const Sequential net{Linear(2, 2), ReLU()};
  const Sequential copy = net;
  EXPECT_EQ(trace(copy, {DType::f32, {3, 2}}), trace(net, {DType::f32, {3, 2}}));
}

TEST(Sequential, DepthKnownAtRunTime_TracesAsTheLiteralList) {
  std::vector<std::shared_ptr<const Layer>> layers;
  for (int i = 0; i < 2; ++i) {
    layers.push_back(std::make_shared<Linear>(2, 2));
    layers.push_back(std::make_shared<ReLU>());
  }
  EXPECT_EQ(trace(Sequential(layers), {DType::f32, {3, 2}}),
            trace(Sequential{Linear(2, 2), ReLU(), Linear(2, 2), ReLU()}, {DType::f32, {3, 2}}));
}

TEST(Sequential, WithoutLayers_IsTheIdentity) {
  const Program program = trace(Sequential{}, {DType::f32, {3}});
  EXPECT_TRUE(program.nodes().empty());
  EXPECT_EQ(program.outputs()[0].value, ValueId::input(0));
}

TEST(Sequential, NullLayer_Throws) {
  EXPECT_THAT([] { Sequential(std::vector<std::shared_ptr<const Layer>>{nullptr}); },
              throws(Category::invalid_argument, "null layer"));
}

TEST(Sequential, Ids_AreThoseOfItsFirstLayer) {
  EXPECT_EQ((Sequential{Embedding(7, 4), Linear(4, 7)}.ids()), 7);
  EXPECT_EQ((Sequential{Linear(4, 7)}.ids()), std::nullopt);
  EXPECT_EQ(Sequential{}.ids(), std::nullopt);
}

TEST(Residual, Parameters_KeepTheirNames) {
  EXPECT_THAT(names(Residual(Sequential{Linear(4, 4)})),
              ElementsAre("layer0.weight", "layer0.bias"));
}

TEST(Dropout, Evaluation_IsTheIdentity) {
  EXPECT_TRUE(trace(Dropout(0.5), {DType::f32, {3}}).nodes().empty());
}

TEST(Dropout, Training_SelectsAwayWhatLiesBelowTheRate) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {4}});
  LayerContext context{Mode::train};
  context.uniform = [&](const Shape& shape) { return tape.input("u", {DType::f32, shape}); };
  tape.output("y", Dropout(0.5).forward(x, {}, context));
  const std::vector<Tensor> in = {Tensor::of<float>({4}, {1, 2, INFINITY, 4}),
                                  Tensor::of<float>({4}, {0.5, 0.25, 0, 0.75})};
  EXPECT_EQ(interpret(tape.finish(), in)[0], Tensor::of<float>({4}, {2, 0, 0, 8}));
}

// x[1,2,2] through attention whose projections are the identity, with that padding.
Tensor attend(AttentionMask mask, std::vector<std::int32_t> padding) {
  const MultiHeadAttention layer(2, 1, mask);
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {1, 2, 2}});
  LayerContext context;
  context.padding = tape.input("padding", {DType::i32, {1, 2}});
  const std::vector<Var> parameters = declare(tape, layer.parameters());
  tape.output("y", layer.forward(x, parameters, context));
  std::vector<Tensor> in = {Tensor::of<float>({1, 2, 2}, {1, 2, 3, 4}),
                            Tensor::of<std::int32_t>({1, 2}, padding)};
  for (int i = 0; i < 4; ++i) {
    in.push_back(Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
    in.push_back(Tensor::of<float>({1, 2}, {0, 0}));
  }
  return interpret(tape.finish(), in)[0];
}

TEST(MultiHeadAttention, Masks_LeaveTheKeysThatTheySay) {
  const auto y = [](std::initializer_list<float> values) {
    return Tensor::of<float>({1, 2, 2}, values);
  };
  EXPECT_EQ(attend(AttentionMask::none, {0, 1}), y({3, 4, 3, 4}));
  EXPECT_EQ(attend(AttentionMask::none, {0, 0}), y({0, 0, 0, 0}));
  EXPECT_EQ(attend(AttentionMask::causal, {0, 1}), y({0, 0, 3, 4}));
  EXPECT_EQ(attend(AttentionMask::causal, {1, 0}), y({1, 2, 1, 2}));
}

TEST(Layers, UnfitUse_Throws) {
  struct Case {
    std::function<void()> use;
    Category category;
    const char* part;
  };
  const Type sequence{DType::f32, {kRows, 4, 6}};
  const auto attention = [](std::int64_t width, std::int64_t heads) {
    return MultiHeadAttention(width, heads, AttentionMask::none);
  };
  const auto padded = [&](const Shape& shape) {
    const MultiHeadAttention layer = attention(6, 2);
    Tape tape;
    const Var x = tape.input("x", {DType::f32, {3, 4, 6}});
    LayerContext context;
    context.padding = tape.input("padding", {DType::f32, shape});
    layer.forward(x, declare(tape, layer.parameters()), context);
  };
  const Case cases[] = {
      {[] { Dropout(1); }, Category::invalid_argument, "the rate 1.000000, expected one in [0, 1)"},
      {[] { Dropout(std::nan("")); }, Category::invalid_argument, "the rate nan"},
      {[] {
         Tape tape;
         Dropout(0.5).forward(tape.input("x", {DType::f32, {2}}), {}, {Mode::train});
       },
       Category::invalid_argument, "found no source of uniform numbers"},
      {[] { LayerNorm(0); }, Category::invalid_argument, "LayerNorm: found the size 0"},
      {[] { RmsNorm(3, 0.0); }, Category::invalid_argument, "RmsNorm: found the epsilon 0.0"},
      {[&] { trace(LayerNorm(5), sequence); }, Category::shape_mismatch,
       "found an input of shape [[B], 4, 6], expected a last size of 5"},
      {[&] {
         trace(RmsNorm(6), {DType::f32, {}});
       },
       Category::shape_mismatch, "rank 0"},
      {[] { Embedding(0, 3); }, Category::invalid_argument, "Embedding: found the size 0"},
      {[] { Embedding(3, 3, DType::i32); }, Category::dtype_mismatch, "found dtype i32"},
      {[&] { trace(Embedding(3, 3), sequence); }, Category::dtype_mismatch,
       "Embedding: found dtype f32, expected an integer dtype"},
      {[&] { trace(PositionEmbedding(5, 6), sequence); }, Category::shape_mismatch,
       "found an input of shape [[B], 4, 6], expected [batch, 5, 6]"},
      {[&] { attention(6, 4); }, Category::invalid_argument, "found width 6 and 4 heads"},
      {[&] { attention(6, 0); }, Category::invalid_argument, "found the size 0"},
      {[&] { trace(attention(4, 2), sequence); }, Category::shape_mismatch,
       "found an input of shape [[B], 4, 6], expected [batch, length, 4]"},
      {[&] {
         padded({4, 3});
       },
       Category::shape_mismatch, "found padding of shape [4, 3], expected [3, 4]"},
      {[&] {
         padded({kRows, 4});
       },
       Category::symbolic_shape_mismatch, "padding of shape [[B], 4]"},
      {[&] { trace(Residual(Linear(6, 5)), sequence); }, Category::shape_mismatch,
       "Residual: found a layer from tensor<[B]x4x6xf32> to tensor<[B]x4x5xf32>"},
  };
  for (const Case& c : cases) EXPECT_THAT(c.use, throws(c.category, c.part));
}

TEST(Tape, MovedFrom_StartsAnew) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {2}});
  Tape moved = std::move(tape);
  moved.output("y", x + x);
  EXPECT_EQ(moved.finish().nodes().size(), 1u);
  tape.output("y", tape.input("x", {DType::f32, {3}}));  // NOLINT: this is what is tested
  EXPECT_EQ(tape.finish().inputs()[0].type, (Type{DType::f32, {3}}));
}

TEST(Layer, WrongParameters_Throw) {
  const auto forward = [](std::vector<Type> types) {
    Tape tape;
    const Var x = tape.input("x", {DType::f32, {1, 2}});
    std::vector<Var> vars;
    for (const Type& type : types)
      vars.push_back(tape.input("p" + std::to_string(vars.size()), type));
    Sequential{Linear(2, 3)}.forward(x, vars);
  };
  EXPECT_THAT(
      [&] {
        forward({{DType::f32, {2, 3}}});
      },
      throws(Category::invalid_argument, "found 1 parameters, expected 2"));
  EXPECT_THAT(
      [&] {
        forward({{DType::f32, {2, 3}}, {DType::f32, {3}}});
      },
      throws(Category::invalid_argument,
             "found tensor<3xf32> for parameter layer0.bias, expected tensor<1x3xf32>"));
}

// A layer of a user's own: parameters, nesting and naming work as for ours.
class Scale : public Layer {
 public:
  std::vector<Parameter> parameters() const override {
    return {{"scale", {DType::f32, {}}, Initializer::constant(2)}};
  }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext&) const override {
    return x * parameters[0];
  }
};

// Checkpoints hold these lines: a change of one refuses those that were saved before.
TEST(Layer, Descriptions_StayAsTheyAre) {
  const Sequential net{Embedding(5, 4),
                       PositionEmbedding(3, 4),
                       Residual(Sequential{LayerNorm(4), ReLU(), Dropout(0.5)}),
                       MultiHeadAttention(4, 2, AttentionMask::causal, 0.5),
                       MultiHeadAttention(4, 1, AttentionMask::none),
                       RmsNorm(4, 0.25),
                       TanH(),
                       Sigmoid(),
                       GELU(),
                       GELU(GeluForm::tanh),
                       Sequential{},
                       Linear(4, 5)};
  EXPECT_THAT(
      net.description(),
      ElementsAre("layer0.Embedding", "layer1.PositionEmbedding",
                  "layer2.Residual.layer0.LayerNorm(epsilon=1.0e-05)",
                  "layer2.Residual.layer1.ReLU", "layer2.Residual.layer2.Dropout",
                  "layer3.MultiHeadAttention(heads=2, mask=causal)",
                  "layer4.MultiHeadAttention(heads=1, mask=none)",
                  "layer5.RmsNorm(epsilon=2.5e-01)", "layer6.TanH", "layer7.Sigmoid",
                  "layer8.GELU(erf)", "layer9.GELU(tanh)", "layer10.Sequential", "layer11.Linear"));
}

TEST(Layer, OfAThirdParty_JoinsASequential) {
  const Sequential net{ReLU(), Scale()};
  EXPECT_THAT(net.description(), ElementsAre("layer0.ReLU", "layer1.Layer"));
  EXPECT_THAT(names(net), ElementsAre("layer1.scale"));
  std::vector<Tensor> in = initialize(net.parameters(), 0);
  in.insert(in.begin(), Tensor::of<float>({3}, {-1, 1, 4}));
  EXPECT_EQ(interpret(trace(net, {DType::f32, {3}}), in)[0], Tensor::of<float>({3}, {0, 2, 8}));
}

}  // namespace
}  // namespace mulgrad
