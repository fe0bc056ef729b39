// Derivation commutes with rewriting: the derivative of a rewritten program and the rewritten
// derivative compute the same, first and second order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "autodiff/derive.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "lowering/legalize.h"
#include "tests/support/near.h"
#include "tests/support/rewrite_check.h"

namespace mulgrad {
namespace {

struct Source {
  std::string name;
  std::function<Var(std::span<const Var>)> loss;
  std::vector<Type> inputs;

  Program program() const {
    Tape tape("main");
    std::vector<Var> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values.push_back(tape.input("x" + std::to_string(i), inputs[i]));
    }
    tape.output("loss", loss(values));
    return tape.finish();
  }
};

Type matrix(std::int64_t rows, std::int64_t columns) { return {DType::f64, {rows, columns}}; }

using Values = std::span<const Var>;
const Axes kBoth{0, 1};

// Programs whose means are all of matrices over both axes, so that expand_mean takes them.
std::vector<Source> matrix_means() {
  return {
      {"mean of exp", [](Values x) { return mean(exp(x[0])); }, {matrix(3, 5)}},
      {"mean of exp, kept",
       [](Values x) { return mean(exp(x[0]), kBoth, KeepDims::yes); },
       {matrix(3, 5)}},
      {"squared error of a product",
       [](Values x) {
         const Var r = matmul(x[0], x[1]) - x[2];
         return mean(r * r);
       },
       {matrix(3, 2), matrix(2, 4), matrix(3, 4)}},
      {"variance",
       [](Values x) {
         const Var centred = x[0] - mean(x[0], kBoth, KeepDims::yes);
         return mean(centred * centred, kBoth, KeepDims::yes);
       },
       {matrix(4, 3)}},
      {"mean of a mean",
       [](Values x) {
         const Var inner = mean(x[0] * x[0], kBoth, KeepDims::yes);
         return mean(tanh(x[1]) * inner);
       },
       {matrix(2, 5), matrix(4, 4)}},
      {"two layers",
       [](Values x) {
         const Var hidden = tanh(matmul(x[0], x[1]));
         const Var r = matmul(hidden, x[2]);
         return mean(r * r * r);
       },
       {matrix(3, 2), matrix(2, 3), matrix(3, 1)}},
      {"single element", [](Values x) { return mean(x[0] * x[0] * x[0]); }, {matrix(1, 1)}},
  };
}

// What the legaliser takes besides.
std::vector<Source> reductions() {
  std::vector<Source> sources = matrix_means();
  const std::vector<Source> more = {
      {"means of rows",
       [](Values x) { return sum(exp(mean(x[0], {1})) * x[1]); },
       {matrix(3, 4), {DType::f64, {3}}}},
      {"bias and scale",
       [](Values x) {
         const Var y = matmul(x[0], x[1]) * x[3] + x[2];
         return mean(logistic(y) * y);
       },
       {matrix(3, 2), matrix(2, 4), matrix(1, 4), {DType::f64, {}}}},
      {"sum over the middle of rank 3",
       [](Values x) {
         const Var s = sum(x[0] * x[0], {1});
         return sum(s * s);
       },
       {{DType::f64, {2, 3, 4}}}},
      {"softmax and its log",
       [](Values x) {
         const Var top = stop_gradient(reduce(Reduction::max, x[0], {1}, KeepDims::yes));
         const Var e = exp(x[0] - top);
         const Var p = e / sum(e, {1}, KeepDims::yes);
         return -mean(sum(log(p) * x[1], {1}));
       },
       {matrix(3, 4), matrix(3, 4)}},
      {"transposed product",
       [](Values x) {
         return mean(exp(dot_general(x[0], x[1], {{}, {}, {0}, {1}, DType::f64})));
       },
       {matrix(3, 2), matrix(4, 3)}},
      {"norm", [](Values x) { return sqrt(sum(x[0] * x[0])); }, {matrix(3, 5)}},
  };
  sources.insert(sources.end(), more.begin(), more.end());
  return sources;
}

// Runs the passes whatever the slot: a joined program is forward and derivative at once.
Program rewritten(Program program, std::span<const Pass> passes) {
  for (const Pass& pass : passes) program = pass.run(program).program;
  return program;
}

// One program that computes the loss, and its gradients as further outputs.
Program with_gradients(const Program& program, const std::string& output) {
  std::vector<std::string> wrt;
  for (const Input& input : program.inputs()) {
    if (input.name.rfind("x", 0) == 0) wrt.push_back(input.name);
  }
  return join(derive(program, {output}, wrt, {Unused::zero}));
}

struct Orders {
  Program source;
  std::span<const Pass> passes;

  // E and D as they are applied, from left to right.
  Program run(const std::string& steps) const {
    Program program = source;
    std::string output = "loss";
    for (const char step : steps) {
      if (step == 'E') {
        program = rewritten(program, passes);
      } else {
        program = with_gradients(program, output);
        output = "grad.x0";
      }
    }
    return program;
  }
};

void expect_equal(const Program& a, const Program& b) {
  ASSERT_TRUE(std::ranges::equal(a.inputs(), b.inputs()));
  ASSERT_EQ(a.outputs().size(), b.outputs().size());
  for (const std::uint64_t seed : {1, 2}) {
    const std::vector<Tensor> inputs = testing::draw_inputs(a, testing::Draw::positive, seed);
    const std::vector<Tensor> want = interpret(a, inputs);
    const std::vector<Tensor> got = interpret(b, inputs);
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(a.outputs()[i].name, b.outputs()[i].name);
      EXPECT_TRUE(testing::near(got[i], want[i], {1e-12, 1e-12, testing::ZeroSign::free}))
          << a.outputs()[i].name;
    }
  }
}

void expect_commutation(const Source& source, std::span<const Pass> passes) {
  SCOPED_TRACE(source.name);
  const Orders orders{source.program(), passes};
  const Program first = orders.run("D");
  for (const std::string steps : {"ED", "DE", "EDE"}) {
    SCOPED_TRACE(steps);
    const Program other = orders.run(steps);
    EXPECT_FALSE(other == first) << "nothing was rewritten";
    expect_equal(first, other);
  }
  const Program second = orders.run("DD");
  for (const std::string steps : {"EDD", "DED", "DDE", "EDEDE"}) {
    SCOPED_TRACE(steps);
    expect_equal(second, orders.run(steps));
  }
}

TEST(Commute, MeanExpansions_CommuteWithDerivation) {
  const Pass passes[] = {expand_mean(), expand_mean_derivative()};
  for (const Source& source : matrix_means()) expect_commutation(source, passes);
}

// The gradient of the expanded mean has no broadcast that divides: derive(expand(P)) needs no
// second expansion, and expand(derive(P)) leaves no mean and no broadcast of the loss behind.
TEST(Commute, ExpandedMean_LeavesNothingForTheMatcherOfItsDerivative) {
  const Pass passes[] = {expand_mean()};
  for (const Source& source : matrix_means()) {
    SCOPED_TRACE(source.name);
    const Program program = Orders{source.program(), passes}.run("ED");
    EXPECT_FALSE(expand_mean_derivative().run(program).changed);
  }
}

TEST(Commute, Legaliser_CommutesWithDerivation) {
  const Pass passes[] = {expand_mean(), expand_mean_derivative(),
                         legalize_to_matmul(Target::matmul_only())};
  const Pass legalise[] = {passes[2]};
  for (const Source& source : matrix_means()) expect_commutation(source, passes);
  for (const Source& source : reductions()) expect_commutation(source, legalise);
}

TEST(Commute, LegaliserWithSlices_CommutesWithDerivation) {
  const Pass passes[] = {legalize_to_matmul(Target::matmul_move())};
  for (const Source& source : reductions()) expect_commutation(source, passes);
}

}  // namespace
}  // namespace mulgrad
