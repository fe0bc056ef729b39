// Gradients of layers, softmax and losses: against JAX, and against finite differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autodiff/derive.h"
#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "autodiff/random.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "tests/support/golden.h"
#include "tests/support/gradient_check.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using testing::check_gradients;
using ::testing::ElementsAre;
using testing::gradients_of;
using testing::matches_golden;
using testing::near;
using testing::read_golden;
using testing::ZeroSign;

const Dim kRows = Dim::symbol("B");

using Loss = Var (*)(Var, Var);

Program trace(Loss loss, const Type& prediction, const Type& target) {
  Tape tape;
  const Var p = tape.input("prediction", prediction);
  const Var t = tape.input("target", target);
  tape.output("loss", loss(p, t));
  return tape.finish();
}

Tensor uniform(std::vector<std::int64_t> sizes, std::uint64_t stream) {
  return Initializer::uniform(2).draw({DType::f64, Shape::of(sizes)}, 11, stream);
}

TEST(SoftmaxCrossEntropy, Gradient_MatchesJax) {
  const nlohmann::json goldens = read_golden("nn.json")["cross_entropy"];
  ASSERT_FALSE(goldens.empty());
  for (const auto& golden : goldens) {
    const auto sizes = golden["sizes"].get<std::vector<std::int64_t>>();
    const auto logits = golden["logits"].get<std::vector<double>>();
    const auto labels = golden["labels"].get<std::vector<std::int32_t>>();
    const auto gradient = golden["gradient"].get<std::vector<double>>();
    for (const DType dtype : {DType::f64, DType::f32}) {
      const std::vector<Tensor> in = {Tensor::from_doubles(dtype, sizes, logits),
                                      Tensor::of<std::int32_t>({sizes[0]}, labels)};
      const Program program = trace(softmax_cross_entropy, in[0].type(), in[1].type());
      const Derivative derivative = derive(program, {"loss"}, {"prediction"});
      EXPECT_TRUE(near(gradients_of(derivative, in)[0],
                       Tensor::from_doubles(dtype, sizes, gradient),
                       {0, dtype == DType::f64 ? 1e-14 : 1e-6, ZeroSign::free}))
          << golden;
    }
  }
}

TEST(SoftmaxCrossEntropy, Derivative_MatchesTheGolden) {
  const Program program = trace(softmax_cross_entropy, {DType::f32, {4, 10}}, {DType::i32, {4}});
  EXPECT_TRUE(matches_golden(print(derive(program, {"loss"}, {"prediction"}).derivative),
                             "autodiff/softmax_cross_entropy_derivative.mlir"));
}

// A device without i1 buffers can still hand what the forward program leaves to the derivative.
TEST(SoftmaxCrossEntropy, Captures_AreFloats) {
  const Program program = trace(softmax_cross_entropy, {DType::f32, {4, 10}}, {DType::i32, {4}});
  const Derivative derivative = derive(program, {"loss"}, {"prediction"});
  for (const Input& input : derivative.derivative.inputs()) {
    EXPECT_EQ(input.type.dtype, DType::f32) << input.name;
  }
}

TEST(Mse, Gradient_MatchesJax) {
  const nlohmann::json goldens = read_golden("nn.json")["mse"];
  ASSERT_FALSE(goldens.empty());
  for (const auto& golden : goldens) {
    const auto sizes = golden["sizes"].get<std::vector<std::int64_t>>();
    const auto prediction = golden["prediction"].get<std::vector<double>>();
    const auto target = golden["target"].get<std::vector<double>>();
    const auto gradient = golden["gradient"].get<std::vector<double>>();
    const std::vector<Tensor> in = {Tensor::of<double>(sizes, prediction),
                                    Tensor::of<double>(sizes, target)};
    const Derivative derivative =
        derive(trace(mse, in[0].type(), in[1].type()), {"loss"}, {"prediction"});
    EXPECT_TRUE(
        near(gradients_of(derivative, in)[0], Tensor::of<double>(sizes, gradient), {0, 1e-14}));
  }
}

TEST(Softmax, MiddleAxisOfRankThree_AgreesWithFiniteDifferences) {
  for (const auto f : {softmax, log_softmax}) {
    Tape tape;
    const Var x = tape.input("x", {DType::f64, {2, 3, 2}});
    tape.output("y", f(x, 1));
    EXPECT_TRUE(check_gradients(tape.finish(), {uniform({2, 3, 2}, 0)}, 2));
  }
}

TEST(Softmax, LossAveragedOnceOverRankThree_AgreesWithFiniteDifferences) {
  Tape tape;
  const Type type{DType::f64, {2, 3, 2}};
  const Var x = tape.input("x", type);
  const Var weights = tape.input("weights", type);
  const Var picked = weights * log_softmax(x, 1);
  tape.output("loss", -mean(sum(picked, {1})));
  EXPECT_TRUE(check_gradients(tape.finish(), {uniform({2, 3, 2}, 0), uniform({2, 3, 2}, 1)}, 2));
}

TEST(Mse, Gradients_AgreeWithFiniteDifferences) {
  const Program program = trace(mse, {DType::f64, {2, 3}}, {DType::f64, {2, 3}});
  EXPECT_TRUE(check_gradients(program, {uniform({2, 3}, 0), uniform({2, 3}, 1)}, 2));
}

TEST(ReLU, GradientAtZero_IsZero) {
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {4}});
  tape.output("y", ReLU().forward(x, {}));
  const Derivative derivative = derive(tape.finish(), {"y"}, {"x"});
  const std::vector<Tensor> in = {Tensor::of<float>({4}, {-1, 0, -0.0f, 2})};
  EXPECT_THAT(gradients_of(derivative, in)[0].to_doubles(), ElementsAre(0, 0, 0, 1));
}

TEST(Sequential, TrainingLoss_AgreesWithFiniteDifferences) {
  const Sequential net{Linear(4, 5, DType::f64), ReLU(), Linear(5, 3, DType::f64)};
  Tape tape;
  const Var x = tape.input("x", {DType::f64, {kRows, 4}});
  const Var labels = tape.input("labels", {DType::i32, {kRows}});
  std::vector<Var> parameters;
  for (const Parameter& parameter : net.parameters()) {
    parameters.push_back(tape.input(parameter.name, parameter.type));
  }
  tape.output("loss", softmax_cross_entropy(net.forward(x, parameters), labels));
  std::vector<Tensor> in = initialize(net.parameters(), 3);
  in.insert(in.begin(), {uniform({6, 4}, 100), Tensor::of<std::int32_t>({6}, {0, 1, 2, 2, 1, 0})});
  EXPECT_TRUE(check_gradients(bind(tape.finish(), {{"B", 6}}), in, 2));
}

}  // namespace
}  // namespace mulgrad
