// Gradients whose right values are known by hand: sums and broadcasts, kinks and ties, zeros,
// infinities and NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "autodiff/tape.h"
#include "tests/support/gradient_check.h"
#include "tests/support/near.h"

namespace mulgrad::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Doubles = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

Tensor tensor(Sizes sizes, const Doubles& values) {
  return Tensor::of<double>(std::move(sizes), values);
}

Doubles counted(std::int64_t n, double first) {
  Doubles values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), first);
  return values;
}

// The gradients of y = f(x0, x1 ...) with respect to each float input, for a seed of ones.
std::vector<Tensor> gradients(const std::vector<Tensor>& inputs,
                              const std::function<Var(const std::vector<Var>&)>& f) {
  Tape tape;
  std::vector<Var> x;
  std::vector<ValueId> wrt;
  for (const Tensor& input : inputs) {
    x.push_back(tape.input("x" + std::to_string(x.size()), input.type()));
    if (is_float(input.dtype())) wrt.push_back(x.back().id());
  }
  tape.output("y", f(x));
  const std::int64_t output = 0;
  return gradients_of(derive(tape.finish(), {&output, 1}, wrt), inputs);
}

Tensor gradient(const Tensor& input, const std::function<Var(Var)>& f) {
  return gradients({input}, [&](const std::vector<Var>& x) { return f(x[0]); })[0];
}

// Equal values; the sign of a zero counts where a test writes -0.
void expect(const Tensor& found, const Tensor& expected, Tolerance tolerance = {}) {
  EXPECT_TRUE(near(found, expected, tolerance));
}

// ---- Sums, means, broadcasts ---------------------------------------------------------------

TEST(Gradient, MeanOfSquares_IsTwoXOverN) {
  expect(gradient(tensor({5}, {1, 1, 1, 1, 1}), [](Var x) { return mean(x * x); }),
         tensor({5}, {0.4, 0.4, 0.4, 0.4, 0.4}));
}

TEST(Gradient, XMinusItsMean_IsZero) {
  expect(gradient(tensor({4}, {1, 2, 3, 4}), [](Var x) { return x - mean(x); }),
         tensor({4}, {0, 0, 0, 0}));
}

TEST(Gradient, RowAddedToMatrix_IsSummedToOneRow) {
  const auto found = gradients({tensor({3, 4}, counted(12, 1)), tensor({1, 4}, counted(4, 1)),
                                tensor({3, 4}, counted(12, 100))},
                               [](const std::vector<Var>& x) {
                                 const Var r = x[2] - (x[0] + x[1]);
                                 return sum(r * r);
                               });
  expect(found[0],
         tensor({3, 4}, {-196, -194, -192, -190, -196, -194, -192, -190, -196, -194, -192, -190}));
  expect(found[1], tensor({1, 4}, {-588, -582, -576, -570}));
}

TEST(Gradient, MeanTimesOuterTens_IsFiveEach) {
  expect(gradient(tensor({2, 3}, {1, 1, 1, 1, 1, 1}),
                  [](Var t) {
                    const Var tens = fill(t.builder(), Literal::from_int(DType::f64, 10), {3, 1});
                    return matmul(mean(t, {0}, KeepDims::yes), tens);
                  }),
         tensor({2, 3}, {5, 5, 5, 5, 5, 5}));
}

TEST(Gradient, ColumnAddedToEmptyMatrix_IsZeros) {
  const auto found =
      gradients({tensor({4, 0}, {}), tensor({4}, {1, 2, 3, 4})}, [](const std::vector<Var>& x) {
        return sum(x[0] + reshape(x[1], {4, 1}));
      });
  expect(found[0], tensor({4, 0}, {}));
  expect(found[1], tensor({4}, {0, 0, 0, 0}));
}

TEST(Gradient, MeanOverNoAxes_IsOneEach) {
  expect(gradient(tensor({3}, {1, 2, 3}), [](Var x) { return mean(x, {}); }),
         tensor({3}, {1, 1, 1}));
}

TEST(Gradient, SecondTerm_DoesNotDisturbTheMean) {
  const auto found = gradients({tensor({4, 3}, counted(12, 1)), tensor({3}, {1, 10, 100})},
                               [](const std::vector<Var>& x) {
                                 const Var weighted = sum(mean(x[0], {0}) * x[1]);
                                 return weighted + sum(x[0] * x[0]);
                               });
  Doubles expected = counted(12, 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = Doubles{0.25, 2.5, 25}[i % 3] + 2 * expected[i];
  }
  expect(found[0], tensor({4, 3}, expected));
}

TEST(Gradient, BroadcastInDim_IsSummedOverNewAndGrownAxes) {
  // x[i,0] goes to y[j, k, i]: permuted, grown along k, new along j.
  const auto f = [](const std::vector<Var>& x) {
    return broadcast_in_dim(x[0], {5, 4, 3}, {2, 1}) * x[1];
  };
  const auto found = gradients({tensor({3, 1}, {1, 2, 3}), tensor({5, 4, 3}, counted(60, 0))}, f);
  expect(found[0], tensor({3, 1}, {570, 590, 610}));  // of 0..59, the elements i, i + 3, ...
}

// ---- Kinks and ties --------------------------------------------------------------------------

TEST(Gradient, AbsAtZero_IsZero) {
  expect(gradient(tensor({3}, {-2, 0, 3}), [](Var x) { return abs(x); }), tensor({3}, {-1, 0, 1}));
}

TEST(Gradient, SqrtAtZero_IsInfinite) {
  expect(gradient(tensor({2}, {0, 4}), [](Var x) { return sqrt(x); }), tensor({2}, {kInf, 0.25}));
}

TEST(Gradient, TieWithConstant_GivesTheVariableNothing) {
  const auto ones = [](Var x) { return fill(x.builder(), Literal::one(DType::f64), x.shape()); };
  const auto mixed = [](Var x) { return constant(x.builder(), tensor({3}, {1, 1, 7})); };
  const auto row = [](Var x) {
    const Var one = fill(x.builder(), Literal::one(DType::f64), {1});
    return broadcast_in_dim(reshape(one, {}), x.shape(), {});
  };
  const std::vector<std::pair<std::string, std::function<Var(Var)>>> cases = {
      {"max(x, 1)", [](Var x) { return maximum(x, 1); }},
      {"max(1, x)", [](Var x) { return maximum(1, x); }},
      {"min(x, 1)", [](Var x) { return minimum(x, 1); }},
      {"max(x, fill)", [&](Var x) { return maximum(x, ones(x)); }},
      {"max(x, constant)", [&](Var x) { return maximum(x, mixed(x)); }},
      {"max(x, broadcast)", [&](Var x) { return maximum(x, row(x)); }},
      {"clamp(1, x, 9)", [](Var x) { return clamp(1, x, 9); }},
      {"clamp(-9, x, 1)", [](Var x) { return clamp(-9, x, 1); }},
  };
  for (const auto& [name, f] : cases) {
    SCOPED_TRACE(name);
    const Doubles found = gradient(tensor({3}, {1, 1, 7}), f).to_doubles();
    EXPECT_EQ(found[0], 0);
    EXPECT_EQ(found[1], 0);
  }
}

TEST(Gradient, Relu_PassesAboveZeroOnly) {
  expect(gradient(tensor({4}, {-1, 0, -0.0, 2}), [](Var x) { return maximum(x, 0); }),
         tensor({4}, {0, 0, 0, 1}));
}

TEST(Gradient, TieOfVariables_IsHalved) {
  const Tensor a = tensor({3}, {1, 2, 3});
  const Tensor b = tensor({3}, {2, 2, 2});
  auto found = gradients({a, b}, [](const std::vector<Var>& x) { return maximum(x[0], x[1]); });
  expect(found[0], tensor({3}, {0, 0.5, 1}));
  expect(found[1], tensor({3}, {1, 0.5, 0}));
  found = gradients({a, b}, [](const std::vector<Var>& x) { return minimum(x[0], x[1]); });
  expect(found[0], tensor({3}, {1, 0.5, 0}));
  expect(found[1], tensor({3}, {0, 0.5, 1}));
  expect(gradient(a, [](Var x) { return maximum(x, x); }), tensor({3}, {1, 1, 1}));
}

TEST(Gradient, Clamp_IsMinOfHighAndMaxOfLowAndX) {
  const auto found = gradients(
      {tensor({5}, {0, 0, 0, 0, 5}), tensor({5}, {-1, 0, 1, 2, 3}), tensor({5}, {2, 2, 2, 2, 2})},
      [](const std::vector<Var>& x) { return clamp(x[0], x[1], x[2]); });
  expect(found[0], tensor({5}, {1, 0.5, 0, 0, 0}));
  expect(found[1], tensor({5}, {0, 0.5, 1, 0.5, 0}));
  expect(found[2], tensor({5}, {0, 0, 0, 0.5, 1}));
}

TEST(Gradient, ReduceExtremum_IsSharedByTheTied) {
  expect(gradient(tensor({4}, {1, 2, 2, 2}), [](Var x) { return reduce(Reduction::max, x, {0}); }),
         tensor({4}, {0, 1.0 / 3, 1.0 / 3, 1.0 / 3}));
  expect(gradient(tensor({4, 3}, Doubles(12, 1)),
                  [](Var x) { return reduce(Reduction::max, x, {0}); }),
         tensor({4, 3}, Doubles(12, 0.25)));
  expect(gradient(tensor({2, 2}, {3, 1, 1, 2}),
                  [](Var x) {
                    return reduce(Reduction::min, x, {0, 1});
                  }),
         tensor({2, 2}, {0, 0.5, 0.5, 0}));
  expect(gradient(tensor({3}, {-kInf, kInf, kInf}),
                  [](Var x) { return reduce(Reduction::max, x, {0}); }),
         tensor({3}, {0, 0.5, 0.5}));
}

TEST(Gradient, StepFunctions_BlockOnlyTheirOwnPath) {
  expect(gradient(tensor({2}, {1.5, -2.5}), [](Var x) { return floor(x) * x; }),
         tensor({2}, {1, -3}));
  expect(gradient(tensor({2}, {1.5, -2.5}), [](Var x) { return stop_gradient(x) * x; }),
         tensor({2}, {1.5, -2.5}));
  expect(gradient(tensor({2}, {1.5, -2.5}),
                  [](Var x) {
                    const Var whole = convert(convert(x, DType::i32), DType::f64);
                    return whole * x;
                  }),
         tensor({2}, {1, -2}));
}

// ---- Zeros, infinities, NaN ---------------------------------------------------------------------

TEST(Gradient, DivisionByZero_ShowsInTheGradientUnlessTheDenominatorIsMasked) {
  const std::vector<Tensor> inputs = {tensor({3}, {1, 1, 1}), tensor({3}, {1, 0, 1})};
  const auto first = [](Var v) { return slice(v, {0}, {1}); };
  auto found = gradients(inputs, [&](const std::vector<Var>& x) { return first(x[0] / x[1]); });
  expect(found[0], tensor({3}, {1, kNaN, 0}));
  found = gradients(inputs, [&](const std::vector<Var>& x) {
    const Var quotient = x[0] / x[1];
    return first(select(compare(Comparison::NE, x[1], 0), quotient, 0));
  });
  expect(found[0], tensor({3}, {1, kNaN, 0}));
  expect(found[1], tensor({3}, {-1, kNaN, -0.0}));
  found = gradients(inputs, [&](const std::vector<Var>& x) {
    const Var mask = compare(Comparison::NE, x[1], 0);
    return first(x[0] / select(mask, x[1], 1));
  });
  expect(found[0], tensor({3}, {1, 0, 0}));
}

TEST(Gradient, ProductWithZeros_IsTheProductOfTheOthers) {
  const auto prod = [](Var x) { return reduce(Reduction::product, x, all_axes(x)); };
  expect(gradient(tensor({3}, {0, 2, 3}), prod), tensor({3}, {6, 0, 0}));
  expect(gradient(tensor({3}, {0, 0, 3}), prod), tensor({3}, {0, 0, 0}));
  expect(gradient(tensor({1}, {5}), prod), tensor({1}, {1}));
  expect(gradient(tensor({0}, {}), prod), tensor({0}, {}));
  expect(gradient(tensor({2, 3}, {1, 2, 3, 4, 0, 5}), prod), tensor({2, 3}, {0, 0, 0, 0, 120, 0}));
  expect(gradient(tensor({7}, {1, 2, 3, 4, 5, 6, 7}), prod),
         tensor({7}, {5040, 2520, 1680, 1260, 1008, 840, 720}));
}

TEST(Gradient, SecondOfProductWithZeros_AgreesWithFiniteDifferences) {
  Tape tape;
  const Var x = tape.input("x", {DType::f64, {2, 3}});
  tape.output("y", reduce(Reduction::product, x, {0, 1}));
  EXPECT_TRUE(check_gradients(tape.finish(), {tensor({2, 3}, {0, 2, 3, 0.5, -1, 1.5})}, 2));
}

TEST(Gradient, NormAtZero_IsNaN) {
  expect(gradient(tensor({2}, {0, 0}), [](Var x) { return sqrt(sum(x * x)); }),
         tensor({2}, {kNaN, kNaN}));
}

TEST(Gradient, Power_AtItsEdges) {
  const auto power = [](const std::vector<Var>& x) { return pow(x[0], x[1]); };
  auto found = gradients({tensor({4}, {0, -2, 0, 2}), tensor({4}, {2, 2, 0, 0})}, power);
  expect(found[0], tensor({4}, {0, -4, 0, 0}));
  expect(found[1], tensor({4}, {0, kNaN, -kInf, std::log(2.0)}), {.relative = 1e-15});
  const Tensor base = tensor({3}, {0, -2, 3});
  expect(gradient(base, [](Var x) { return pow(x, 2); }), tensor({3}, {0, -4, 6}));
  expect(gradient(base, [](Var x) { return pow(x, 1); }), tensor({3}, {1, 1, 1}));
  expect(gradient(base, [](Var x) { return pow(x, 0); }), tensor({3}, {0, 0, 0}));
  expect(gradient(base, [](Var x) { return pow(x, 0.5); }),
         tensor({3}, {kInf, kNaN, 0.5 / std::sqrt(3.0)}), {.relative = 1e-15});
  expect(gradient(tensor({2}, {3, -1}), [](Var x) { return pow(2, x); }),
         tensor({2}, {8 * std::log(2.0), 0.5 * std::log(2.0)}), {.relative = 1e-15});
}

TEST(Gradient, Select_LetsNothingThroughTheBranchNotTaken) {
  const auto found =
      gradients({Tensor::of<bool>({2}, {true, false}), tensor({2}, {1, 2}), tensor({2}, {3, 4}),
                 tensor({2}, {kNaN, kInf})},
                [](const std::vector<Var>& x) { return select(x[0], x[1], x[2]) * x[3]; });
  expect(found[0], tensor({2}, {kNaN, 0}));
  expect(found[1], tensor({2}, {0, kInf}));
}

// ---- Casts and movement ----------------------------------------------------------------------

TEST(Gradient, ConvertBetweenFloats_ConvertsBack) {
  const Tensor x = Tensor::of<float>({2}, {1.5f, 2.0f});
  const Tensor found = gradient(x, [](Var v) {
    const Var wide = convert(v, DType::f64);
    return wide * wide;
  });
  expect(found, Tensor::of<float>({2}, {3.0f, 4.0f}));
}

TEST(Gradient, Pad_CropsAndSkipsTheInterior) {
  const auto found =
      gradients({tensor({4}, {1, 2, 3, 4}), tensor({}, {9}), tensor({6}, counted(6, 1))},
                [](const std::vector<Var>& x) { return pad(x[0], x[1], {-1}, {0}, {1}) * x[2]; });
  // y = v x1 v x2 v x3, so x0 is cropped away.
  expect(found[0], tensor({4}, {0, 2, 4, 6}));
  expect(found[1], tensor({}, {9}));
  const auto shifted =
      gradients({tensor({3}, {1, 2, 3}), tensor({}, {9}), tensor({3}, {10, 20, 30})},
                [](const std::vector<Var>& x) { return pad(x[0], x[1], {5}, {-5}) * x[2]; });
  expect(shifted[0], tensor({3}, {0, 0, 0}));
  expect(shifted[1], tensor({}, {60}));
}

}  // namespace
}  // namespace mulgrad::testing
