#include "autodiff/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/near.h"

namespace mulgrad {
namespace {

using testing::matches_golden;
using testing::near;
using testing::read_golden;
using testing::throws;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Dim kRows = Dim::symbol("B");

Program trace(const Type& type, const std::function<Var(Var)>& f) {
  Tape tape;
  tape.output("y", f(tape.input("x", type)));
  return tape.finish();
}

using Loss = Var (*)(Var, Var);

Program trace(Loss loss, const Type& first, const Type& second) {
  Tape tape;
  const Var a = tape.input("a", first);
  const Var b = tape.input("b", second);
  tape.output("loss", loss(a, b));
  return tape.finish();
}

std::vector<double> doubles(const nlohmann::json& array) {
  return array.get<std::vector<double>>();
}

TEST(Softmax, ExtremeRows_HaveTheirRightValues) {
  const Tensor x =
      Tensor::of<double>({4, 2}, {1000, 0, -1000, -1000, kInfinity, 0, -kInfinity, -kInfinity});
  const double nan = std::nan("");
  const Tensor want = Tensor::of<double>({4, 2}, {1, 0, .5, .5, nan, nan, nan, nan});
  for (const std::int64_t axis : {1, -1}) {
    const Program program = trace(x.type(), [=](Var v) { return softmax(v, axis); });
    EXPECT_TRUE(near(interpret(program, std::vector{x})[0], want));
  }
}

TEST(Softmax, MaskedEntry_GetsExactlyZero) {
  const Tensor x = Tensor::of<float>({1, 3}, {2, -std::numeric_limits<float>::infinity(), 2});
  const Program program = trace(x.type(), [](Var v) { return softmax(v, 1); });
  EXPECT_EQ(interpret(program, std::vector{x})[0], Tensor::of<float>({1, 3}, {.5, 0, .5}));
}

TEST(Softmax, AnyAxis_NormalisesAlongIt) {
  const Tensor x = Tensor::of<double>({2, 2, 2}, {0, 1, 2, 4, -1, 3, 0, 0});
  for (const std::int64_t axis : {0, 1, 2}) {
    const Tensor y =
        interpret(trace(x.type(), [=](Var v) { return softmax(v, axis); }), std::vector{x})[0];
    const std::int64_t stride = std::int64_t{4} >> axis;
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t other = i ^ stride;  // the other entry of the slice
      const double want = 1 / (1 + std::exp(x.data<double>()[static_cast<std::size_t>(other)] -
                                            x.data<double>()[static_cast<std::size_t>(i)]));
      EXPECT_NEAR(y.data<double>()[static_cast<std::size_t>(i)], want, 1e-15) << axis << " " << i;
    }
  }
}

TEST(LogSoftmax, FarApartLogits_KeepWhatALogOfSoftmaxLoses) {
  const Tensor x = Tensor::of<double>({1, 3}, {1000, 0, -kInfinity});
  const Program program = trace(x.type(), [](Var v) { return log_softmax(v, 1); });
  EXPECT_EQ(interpret(program, std::vector{x})[0],
            Tensor::of<double>({1, 3}, {0, -1000, -kInfinity}));
}

TEST(Softmax, UnfitOperand_Throws) {
  for (const auto f : {softmax, log_softmax}) {
    const auto call = [&](const Type& type, std::int64_t axis) {
      trace(type, [&](Var x) { return f(x, axis); });
    };
    EXPECT_THAT(
        [&] {
          call({DType::i32, {2, 3}}, 1);
        },
        throws(Category::dtype_mismatch, "found dtype i32, expected a float dtype"));
    EXPECT_THAT(
        [&] {
          call({DType::f32, {2, 3}}, 2);
        },
        throws(Category::reduction_shape_mismatch, "[2]"));
    EXPECT_THAT(
        [&] {
          call({DType::f32, {2, 3}}, -3);
        },
        throws(Category::reduction_shape_mismatch, "rank 2"));
  }
}

TEST(SoftmaxCrossEntropy, Emitted_MatchesTheGolden) {
  EXPECT_TRUE(matches_golden(
      print(trace(softmax_cross_entropy, {DType::f32, {kRows, 10}}, {DType::i32, {kRows}})),
      "autodiff/softmax_cross_entropy.mlir"));
}

TEST(SoftmaxCrossEntropy, Values_MatchJax) {
  const nlohmann::json goldens = read_golden("nn.json")["cross_entropy"];
  ASSERT_FALSE(goldens.empty());
  for (const auto& golden : goldens) {
    const auto sizes = golden["sizes"].get<std::vector<std::int64_t>>();
    const auto labels = golden["labels"].get<std::vector<std::int32_t>>();
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor logits = Tensor::from_doubles(dtype, sizes, doubles(golden["logits"]));
      const Tensor label = Tensor::of<std::int32_t>({sizes[0]}, labels);
      const Program program = trace(softmax_cross_entropy, logits.type(), label.type());
      const Tensor loss = interpret(program, std::vector{logits, label})[0];
      const double want[] = {golden["loss"].get<double>()};
      EXPECT_TRUE(near(loss, Tensor::from_doubles(dtype, {}, want),
                       {dtype == DType::f64 ? 1e-14 : 1e-6, 0, testing::ZeroSign::free}))
          << golden;
    }
  }
}

TEST(SoftmaxCrossEntropy, EveryIntegerDtype_LabelsAlike) {
  const Tensor logits = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 6, 5});
  const double labels[] = {2, 0};
  std::vector<Tensor> losses;
  for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::i8}) {
    const Tensor label = Tensor::from_doubles(dtype, {2}, labels);
    losses.push_back(interpret(trace(softmax_cross_entropy, logits.type(), label.type()),
                               std::vector{logits, label})[0]);
    EXPECT_EQ(losses.back(), losses.front());
  }
}

// bf16 holds no integer between 256 and 258, so labels are compared in f32.
TEST(SoftmaxCrossEntropy, ManyClassesInBfloat16_PickTheirOwn) {
  std::vector<double> values(300, 0.0);
  values[257] = 16;
  const Tensor logits = Tensor::from_doubles(DType::bf16, {1, 300}, values);
  const auto loss = [&](std::int32_t label) {
    const Tensor labels = Tensor::of<std::int32_t>({1}, {label});
    return interpret(trace(softmax_cross_entropy, logits.type(), labels.type()),
                     std::vector{logits, labels})[0]
        .to_doubles()[0];
  };
  EXPECT_LT(loss(257), 0.01);
  EXPECT_EQ(loss(256), 16);
  EXPECT_EQ(loss(258), 16);
}

TEST(SoftmaxCrossEntropy, Integers_OnlyMeetAConvert) {
  const Program program =
      trace(softmax_cross_entropy, {DType::f32, {kRows, 10}}, {DType::i32, {kRows}});
  for (const Node& node : program.nodes()) {
    EXPECT_FALSE(is_integer(node.type.dtype)) << node.text_name();
    for (const Operand& operand : node.operands) {
      if (!operand.is_literal() && is_integer(program.type(operand.value()).dtype)) {
        EXPECT_EQ(kind_of(node.op), OpKind::Convert);
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, ClassTakenAwayByMinusInfinity_LeavesTheOthers) {
  const std::vector<Tensor> in = {Tensor::of<double>({1, 3}, {1, -kInfinity, 1}),
                                  Tensor::of<std::int32_t>({1}, {2})};
  const Program program = trace(softmax_cross_entropy, in[0].type(), in[1].type());
  EXPECT_NEAR(interpret(program, in)[0].data<double>()[0], std::log(2.0), 1e-15);
}

TEST(SoftmaxCrossEntropy, NoRows_IsNaN) {
  const std::vector<Tensor> in = {Tensor(DType::f32, {0, 3}), Tensor(DType::i32, {0})};
  const Program program = trace(softmax_cross_entropy, in[0].type(), in[1].type());
  EXPECT_TRUE(std::isnan(interpret(program, in)[0].data<float>()[0]));
}

TEST(SoftmaxCrossEntropy, UnfitOperands_Throw) {
  struct Case {
    Type logits;
    Type labels;
    Category category;
    const char* part;
  };
  const Case cases[] = {
      {{DType::i32, {2, 3}}, {DType::i32, {2}}, Category::dtype_mismatch, "found dtype i32"},
      {{DType::f32, {2, 3}}, {DType::f32, {2}}, Category::dtype_mismatch, "labels of dtype f32"},
      {{DType::f32, {2, 3}}, {DType::i1, {2}}, Category::dtype_mismatch, "labels of dtype i1"},
      {{DType::f32, {3}}, {DType::i32, {}}, Category::shape_mismatch, "logits of shape [3]"},
      {{DType::f32, {2, 3}},
       {DType::i32, {2, 1}},
       Category::shape_mismatch,
       "labels of shape [2, 1]"},
      {{DType::f32, {2, 3}},
       {DType::i32, {3}},
       Category::shape_mismatch,
       "labels of shape [3] for"},
      {{DType::f32, {2, 4, 3}},
       {DType::i32, {4, 2}},
       Category::shape_mismatch,
       "labels of shape [4, 2] for logits of shape [2, 4, 3], expected one label per row: [2, 4]"},
      {{DType::f32, {kRows, 3}}, {DType::i32, {3}}, Category::symbolic_shape_mismatch, "[3] for"},
      {{DType::f32, {2, 0}}, {DType::i32, {2}}, Category::shape_mismatch, "expected 1 to 16777216"},
      {{DType::f32, {2, 16777217}}, {DType::i32, {2}}, Category::shape_mismatch, "16777217"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT([&] { trace(softmax_cross_entropy, c.logits, c.labels); },
                throws(c.category, c.part));
  }
}

TEST(Mse, Emitted_MatchesTheGolden) {
  EXPECT_TRUE(matches_golden(print(trace(mse, {DType::f32, {kRows, 3}}, {DType::f32, {kRows, 3}})),
                             "autodiff/mse.mlir"));
}

TEST(Mse, Values_MatchJax) {
  const nlohmann::json goldens = read_golden("nn.json")["mse"];
  ASSERT_FALSE(goldens.empty());
  for (const auto& golden : goldens) {
    const auto sizes = golden["sizes"].get<std::vector<std::int64_t>>();
    const std::vector<Tensor> in = {
        Tensor::from_doubles(DType::f64, sizes, doubles(golden["prediction"])),
        Tensor::from_doubles(DType::f64, sizes, doubles(golden["target"]))};
    EXPECT_TRUE(near(interpret(trace(mse, in[0].type(), in[1].type()), in)[0],
                     Tensor::scalar(golden["loss"].get<double>()), {1e-14}));
  }
}

TEST(Mse, UnequalTypes_Throw) {
  const Type column{DType::f32, {4, 1}};
  EXPECT_THAT(
      [&] {
        trace(mse, column, {DType::f32, {1, 4}});
      },
      throws(Category::shape_mismatch, "tensor<4x1xf32> and a target tensor<1x4xf32>"));
  EXPECT_THAT(
      [&] {
        trace(mse, column, {DType::f32, {kRows, 1}});
      },
      throws(Category::symbolic_shape_mismatch, "expected equal shapes"));
  EXPECT_THAT(
      [&] {
        trace(mse, column, {DType::f64, {4, 1}});
      },
      throws(Category::dtype_mismatch, "expected equal dtypes"));
  EXPECT_THAT(
      [&] {
        trace(mse, {DType::i32, {4}}, {DType::i32, {4}});
      },
      throws(Category::dtype_mismatch, "found dtype i32, expected a float dtype"));
}

}  // namespace
}  // namespace mulgrad
