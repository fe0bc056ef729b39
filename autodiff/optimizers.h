// Optimizers: emitters of the update of one parameter, and of the scalars that all updates of a
// step share. Both are ordinary programs: a target sees the update as it sees the loss.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autodiff/schedules.h"
#include "core/expr.h"

namespace mulgrad {

struct NamedVar {
  std::string name;
  Var value;
};

// What a step makes of one parameter; each entry is typed as the parameter.
struct Update {
  Var parameter;
  std::vector<Var> state;  // in the order of Optimizer::state()
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // The tensors kept per parameter, each typed as the parameter and zero before the first step.
  virtual std::vector<std::string> state() const = 0;

  // The step scalars, of rank 0 and the given float dtype, from `count`: rank-0 i64, 1 in the first
  // step. Throws invalid_update_signature for another count and dtype_mismatch for another dtype.
  std::vector<NamedVar> scalars(Var count, DType dtype) const;
  // Their names, in order.
  std::vector<std::string> scalar_names() const;

  // One step of one parameter of any shape and the scalars' dtype: elementwise ops only. Throws
  // invalid_update_signature when the number of states or scalars is not as state() and
  // scalar_names() say, gradient or state is not typed as the parameter, or a scalar is no rank-0
  // value of its dtype.
  Update update(Var parameter, Var gradient, std::span<const Var> state,
                std::span<const Var> scalars) const;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

 private:
  virtual std::vector<NamedVar> emit_scalars(Var count, DType dtype) const = 0;
  virtual Update emit_update(Var parameter, Var gradient, std::span<const Var> state,
                             std::span<const Var> scalars) const = 0;
};

// Stochastic gradient descent with momentum, as PyTorch's SGD defines it (no dampening):
//   g' = g + weight_decay p;  m' = momentum m + g';  p' = p - rate m'
// With momentum 0 there is no state and p' = p - rate g'. State: "momentum". Scalars: "rate".
// Throws invalid_argument unless weight_decay is finite and >= 0, momentum in [0, 1).
class SGD : public Optimizer {
 public:
  struct Settings {
    Schedule rate;  // a number for a constant one
    double momentum = 0;
    double weight_decay = 0;
  };
  explicit SGD(Settings settings);
  std::vector<std::string> state() const override;

 private:
  std::vector<NamedVar> emit_scalars(Var count, DType dtype) const override;
  Update emit_update(Var parameter, Var gradient, std::span<const Var> state,
                     std::span<const Var> scalars) const override;
  Settings settings_;
};

// Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019), in PyTorch's order: decay
// first, epsilon outside the root. t is the count:
//   d = p (1 - rate weight_decay)
//   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g g
//   p' = d - rate (m' / correction1) / (sqrt(v' / correction2) + epsilon)
// correction_i = 1 - beta_i^t, as -expm1(t ln beta_i): accurate for small t and beta near 1. With
// weight_decay 0 this is Adam (Kingma and Ba, ICLR 2015). State: "m", "v". Scalars: "rate",
// "correction1", "correction2". Throws invalid_argument unless epsilon and weight_decay are finite
// and >= 0, and both betas in [0, 1).
class AdamW : public Optimizer {
 public:
  struct Settings {
    Schedule rate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.01;
  };
  explicit AdamW(Settings settings);
  std::vector<std::string> state() const override;

 private:
  std::vector<NamedVar> emit_scalars(Var count, DType dtype) const override;
  Update emit_update(Var parameter, Var gradient, std::span<const Var> state,
                     std::span<const Var> scalars) const override;
  Settings settings_;
};

}  // namespace mulgrad
