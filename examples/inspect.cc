// inspect: what the library makes of a loss, in print.
//
// A loss is recorded as plain expressions; its derivative is a program like any other; a pipeline
// turns both into matrix products and elementwise ops; the derivative can be derived again. Each
// program is printed, then all of them are run on the reference interpreter and compared.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "autodiff/derive.h"
#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "core/rewrite/pass_manager.h"
#include "core/text.h"
#include "lowering/pipeline.h"
#include "lowering/target.h"

using namespace mulgrad;

namespace {

void show(const std::string& heading, const Program& program) {
  std::printf("== %s\n%s\n", heading.c_str(), print(program).c_str());
}

constexpr double kTolerance = 1e-12;

Tensor combined(const Tensor& a, double factor, const Tensor& b) {
  std::vector<double> values = a.to_doubles();
  const std::vector<double> added = b.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += factor * added[i];
  return Tensor::from_doubles(a.dtype(), {a.sizes().begin(), a.sizes().end()}, values);
}

// The largest difference over the largest value; infinity where either side has a NaN.
double difference(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = got.to_doubles();
  const std::vector<double> b = want.to_doubles();
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double gap = std::abs(a[i] - b[i]);
    if (std::isnan(gap)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, gap);
    largest = std::max(largest, std::abs(b[i]));
  }
  return worst / largest;
}

// mean((x @ w - y)^2), over all elements.
Program record_loss() {
  Tape tape("loss");
  const Var x = tape.input("x", {DType::f64, {3, 2}});
  const Var w = tape.input("w", {DType::f64, {2, 4}});
  const Var y = tape.input("y", {DType::f64, {3, 4}});
  const Var error = matmul(x, w) - y;
  tape.output("loss", mean(error * error));
  return tape.finish();
}

int run() {
  const Program loss = record_loss();
  show("The loss, mean((x @ w - y)^2)", loss);

  // The derivative reads values of the forward program; those become results of it, marked as
  // captures, and inputs of the derivative under the same names.
  const Derivative first = derive(loss, {"loss"}, {"w"});
  show("The same, with what the derivative reads", first.forward);
  show("The derivative with respect to w", first.derivative);

  // The means and broadcasts that a device without reductions lacks become products with ones.
  const Target target = Target::matmul_only();
  const Derivative rewritten = {
      run_passes(first.forward, Slot::forward, default_pipeline(target, Slot::forward)).program,
      run_passes(first.derivative, Slot::derivative, default_pipeline(target, Slot::derivative))
          .program};
  show("The forward program for matmul_only", rewritten.forward);
  show("The derivative for matmul_only", rewritten.derivative);

  // Forward and derivative in one program can be derived again: the gradient of w as a function of
  // w. Seeded with v, its derivative is the Hessian times v.
  const Program gradient = join(first);
  const Derivative second = derive(gradient, {"grad.w"}, {"w"});
  show("The second derivative with respect to w", second.derivative);

  const Tensor x = Tensor::of<double>({3, 2}, {1, -2, 0.5, 3, -1, 1.5});
  const Tensor w = Tensor::of<double>({2, 4}, {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, -0.8});
  const Tensor y = Tensor::of<double>({3, 4}, {1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0});
  const Tensor v = Tensor::of<double>({2, 4}, {1, 0, -1, 2, 0, 1, 1, -2});
  const Tensor seed = Tensor::scalar(1.0);

  std::printf("== On the interpreter\n");
  const std::vector<Tensor> plain = interpret(gradient, std::vector{x, w, y, seed});
  const std::vector<Tensor> products = interpret(join(rewritten), std::vector{x, w, y, seed});
  std::printf("loss %.6f\n", plain[0].to_doubles()[0]);
  const double rewriting =
      std::max(difference(products[0], plain[0]), difference(products[1], plain[1]));
  std::printf("rewritten against original: %.1e\n", rewriting);

  // The loss is quadratic in w, so that the change of its gradient along v is the Hessian times v.
  const std::vector<Tensor> moved = interpret(gradient, std::vector{x, combined(w, 1, v), y, seed});
  const std::vector<Tensor> curved = interpret(join(second), std::vector{x, w, y, seed, v});
  const double curvature = difference(curved.back(), combined(moved[1], -1, plain[1]));
  std::printf("Hessian times v against the change of the gradient: %.1e\n", curvature);

  const bool agree = rewriting <= kTolerance && curvature <= kTolerance;
  std::printf("inspect: %s\n", agree ? "all agree" : "DISAGREE");
  return agree ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "inspect: %s\n", error.what());
    return 1;
  }
}
