// A linear regression on a device that has fill, the plain product, multiply, add, subtract,
// reshape and transpose, and nothing else, against the closed-form solution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "tests/support/step_machine.h"

namespace mulgrad {
namespace {

constexpr std::size_t kRows = 12;
constexpr std::size_t kColumns = 3;

using testing::StepMachine;

// The machine of seven ops; the programs that it is given hold plain products alone.
StepMachine seven_ops() { return StepMachine({OpKind::Negate, OpKind::Exponential}); }

bool has_plain_products_alone(const Program& program) {
  return std::ranges::all_of(program.nodes(), [](const Node& node) {
    const auto* product = std::get_if<DotGeneral>(&node.op);
    return product == nullptr ||
           (node.type.rank() == 2 && product->lhs_batch.empty() &&
            product->lhs_contracting == Axes{1} && product->rhs_contracting == Axes{0});
  });
}

struct Data {
  std::vector<double> x, y;

  Data() {
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t k = 0; k < kColumns; ++k) {
        const auto phase = static_cast<double>(3 * i + k);
        x.push_back(std::sin(1.7 * phase) + 0.25 * std::cos(0.9 * phase));
      }
      y.push_back(std::cos(0.6 * static_cast<double>(i)) + 0.5 * x[i * kColumns] - x.back());
    }
  }
  double column(std::size_t row, std::size_t k) const {  // the last is that of the bias
    return k == kColumns ? 1 : x[row * kColumns + k];
  }
};

// Solves the normal equations [x 1]^T [x 1] s = [x 1]^T y by Gaussian elimination with pivoting.
std::vector<double> closed_form(const Data& data) {
  constexpr std::size_t n = kColumns + 1;
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) rows[a][b] += data.column(i, a) * data.column(i, b);
      rows[a][n] += data.column(i, a) * data.y[i];
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    const auto larger = [k](const auto& a, const auto& b) {
      return std::fabs(a[k]) < std::fabs(b[k]);
    };
    std::swap(rows[k],
              *std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(), larger));
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (std::size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  std::vector<double> solution;
  for (std::size_t k = 0; k < n; ++k) solution.push_back(rows[k][n] / rows[k][k]);
  return solution;
}

// mean((x@w + ones@b - y)^2), with the bias [1,1] spread over the rows by a product.
TrainingSpec regression() {
  TrainingSpec spec;
  spec.inputs = {{"x", {DType::f64, {kRows, kColumns}}},
                 {"y", {DType::f64, {kRows, 1}}},
                 {"w", {DType::f64, {kColumns, 1}}},
                 {"b", {DType::f64, {1, 1}}}};
  spec.parameters = {"w", "b"};
  spec.loss = [](Tape& tape, const NamedVars& in) {
    const Var ones = fill(tape.builder(), Literal::one(DType::f64), {kRows, 1});
    const Var r = matmul(in["x"], in["w"]) + matmul(ones, in["b"]) - in["y"];
    return mean(r * r);
  };
  spec.optimizer_inputs = {{"rate", {DType::f64, {}}}};
  spec.update = [](const UpdateArguments& in) {
    return Update{in.parameter - in.optimizer_inputs["rate"] * in.gradient, {}};
  };
  return spec;
}

// Trains from zero with the lowered artifacts and returns w and b.
std::vector<double> train(const TrainingSpec& spec, const Passes& passes, StepMachine& device) {
  const auto compiled = device.compile(spec, passes);
  const Data data;
  const TrainingStep& step = compiled.step;
  for (const CoverageArtifact& entry : step.artifacts) {
    EXPECT_TRUE(has_plain_products_alone(entry.artifact.program)) << entry.artifact.name;
  }
  const Tensor x = Tensor::of<double>({kRows, kColumns}, data.x);
  const Tensor y = Tensor::of<double>({kRows, 1}, data.y);
  std::vector<Tensor> parameters{Tensor(DType::f64, {kColumns, 1}), Tensor(DType::f64, {1, 1})};
  const Program& forward = step.forward().program;
  for (int i = 0; i < 1500; ++i) {
    device.set("forward", "x", x);
    device.set("forward", "y", y);
    device.set("forward", "w", parameters[0]);
    device.set("forward", "b", parameters[1]);
    device.run("forward");
    device.set("derivative", "loss", Tensor::scalar(1.0));
    for (std::size_t k = 0; k < forward.outputs().size(); ++k) {
      const Output& output = forward.outputs()[k];
      if (output.role != OutputRole::capture) continue;
      device.set("derivative", output.name, device.memory.at(compiled.lowered[0].output(k).index));
    }
    device.run("derivative");
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::string& update = step.update(p).name;
      device.set(update, "parameter", parameters[p]);
      device.set(update, "gradient", device.memory.at(compiled.lowered[1].output(p).index));
      device.set(update, "rate", Tensor::scalar(0.3));
      device.run(update);
      parameters[p] = device.memory.at(compiled.lowered[step.update_of[p]].output(0).index);
    }
  }
  std::vector<double> result = parameters[0].to_doubles();
  result.push_back(parameters[1].to_doubles()[0]);
  return result;
}

TEST(LinearRegression, Device_HasSevenOps) {
  EXPECT_THAT(seven_ops().registry.ops(),
              ::testing::UnorderedElementsAre(OpKind::Fill, OpKind::DotGeneral, OpKind::Multiply,
                                              OpKind::Add, OpKind::Subtract, OpKind::Reshape,
                                              OpKind::Transpose));
}

TEST(LinearRegression, BothExpansions_TrainToTheClosedForm) {
  StepMachine device = seven_ops();
  const std::vector<double> found =
      train(regression(), {{expand_mean()}, {expand_mean_derivative()}, {}}, device);
  EXPECT_THAT(found, ::testing::Pointwise(::testing::DoubleNear(1e-8), closed_form(Data())));
}

// The bias as people write it: its broadcast and its gradient's sum become products too.
TEST(LinearRegression, DefaultPipeline_TrainsToTheClosedForm) {
  TrainingSpec spec = regression();
  spec.loss = [](Tape&, const NamedVars& in) {
    const Var r = matmul(in["x"], in["w"]) + in["b"] - in["y"];
    return mean(r * r);
  };
  StepMachine device = seven_ops();
  const std::vector<double> found =
      train(spec, Passes::for_target(Target::of(device.registry)), device);
  EXPECT_THAT(found, ::testing::Pointwise(::testing::DoubleNear(1e-8), closed_form(Data())));
}

}  // namespace
}  // namespace mulgrad
