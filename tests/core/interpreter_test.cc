#include "core/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/custom.h"
#include "core/expr.h"

namespace mulgrad {
namespace {

TEST(Interpreter, MeanOfSquares_Evaluates) {
  Builder b;
  const Var x(b, b.input("x", {DType::f32, {2, 3}}));
  const Var w(b, b.input("w", {DType::f32, {3, 2}}));
  b.output("loss", mean(matmul(x, w) * matmul(x, w)).id());
  const std::vector<Tensor> in = {Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                                  Tensor::of<float>({3, 2}, {1, 0, 0, 1, 1, 1})};
  // x @ w = [[4, 5], [10, 11]]
  EXPECT_EQ(interpret(b.finish(), in)[0], Tensor::scalar<float>((16 + 25 + 100 + 121) / 4.0f));
}

}  // namespace
}  // namespace mulgrad
