#include "autodiff/optimizers.h"

#include <cmath>

namespace mulgrad {
namespace {

void expect_scale(const char* what, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw Error(Category::invalid_argument, std::string(what) + ": found " + std::to_string(value) +
                                              ", expected a finite number >= 0");
}

void expect_fraction(const char* what, double value) {
  if (value >= 0 && value < 1) return;
  throw Error(Category::invalid_argument, std::string(what) + ": found " + std::to_string(value) +
                                              ", expected a number in [0, 1)");
}

void expect_type(const std::string& what, const Type& found, const Type& expected) {
  if (found == expected) return;
  throw Error(Category::invalid_update_signature,
              what + ": found " + found.to_string() + ", expected " + expected.to_string());
}

void expect_number(const char* what, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(Category::invalid_update_signature, "found " + std::to_string(found) + " " + what +
                                                      ", expected " + std::to_string(expected));
}

// 1 - beta^t without the cancellation of the plain difference. beta 0 gives exactly 1.
Var bias_correction(Var t, double beta) { return -expm1(t * std::log(beta)); }

}  // namespace

std::vector<NamedVar> Optimizer::scalars(Var count, DType dtype) const {
  expect_type("step count", count.type(), {DType::i64, {}});
  if (!is_float(dtype)) {
    throw Error(
        Category::dtype_mismatch,
        "step scalars: found dtype " + std::string(to_string(dtype)) + ", expected a float dtype");
  }
  return emit_scalars(count, dtype);
}

std::vector<std::string> Optimizer::scalar_names() const {
  Builder scratch;
  const Var count(scratch, scratch.input("count", {DType::i64, {}}));
  std::vector<std::string> names;
  for (NamedVar& scalar : emit_scalars(count, DType::f64)) names.push_back(std::move(scalar.name));
  return names;
}

Update Optimizer::update(Var parameter, Var gradient, std::span<const Var> state,
                         std::span<const Var> scalars) const {
  const std::vector<std::string> states = this->state();
  const std::vector<std::string> names = scalar_names();
  expect_number("state tensors", state.size(), states.size());
  expect_number("step scalars", scalars.size(), names.size());
  expect_type("gradient", gradient.type(), parameter.type());
  for (std::size_t i = 0; i < states.size(); ++i) {
    expect_type("state " + states[i], state[i].type(), parameter.type());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    expect_type("step scalar " + names[i], scalars[i].type(), {parameter.dtype(), {}});
  }
  return emit_update(parameter, gradient, state, scalars);
}

SGD::SGD(Settings settings) : settings_(settings) {
  expect_fraction("SGD momentum", settings.momentum);
  expect_scale("SGD weight_decay", settings.weight_decay);
}

std::vector<std::string> SGD::state() const {
  if (settings_.momentum == 0) return {};
  return {"momentum"};
}

std::vector<NamedVar> SGD::emit_scalars(Var count, DType dtype) const {
  return {{"rate", settings_.rate.emit(count, dtype)}};
}

Update SGD::emit_update(Var p, Var g, std::span<const Var> state,
                        std::span<const Var> scalars) const {
  const Var rate = scalars[0];
  if (settings_.weight_decay != 0) g = g + settings_.weight_decay * p;
  if (state.empty()) return {p - rate * g, {}};
  const Var m = settings_.momentum * state[0] + g;
  return {p - rate * m, {m}};
}

AdamW::AdamW(Settings settings) : settings_(settings) {
  expect_fraction("AdamW beta1", settings.beta1);
  expect_fraction("AdamW beta2", settings.beta2);
  expect_scale("AdamW epsilon", settings.epsilon);
  expect_scale("AdamW weight_decay", settings.weight_decay);
}

std::vector<std::string> AdamW::state() const { return {"m", "v"}; }

std::vector<NamedVar> AdamW::emit_scalars(Var count, DType dtype) const {
  const Var rate = settings_.rate.emit(count, dtype);
  const Var t = convert(count, dtype);
  const Var correction1 = bias_correction(t, settings_.beta1);
  const Var correction2 = bias_correction(t, settings_.beta2);
  return {{"rate", rate}, {"correction1", correction1}, {"correction2", correction2}};
}

Update AdamW::emit_update(Var p, Var g, std::span<const Var> state,
                          std::span<const Var> scalars) const {
  const Var rate = scalars[0], correction1 = scalars[1], correction2 = scalars[2];
  const auto& [unused, beta1, beta2, epsilon, weight_decay] = settings_;
  if (weight_decay != 0) p = p * (1 - weight_decay * rate);
  // One node-making operand per expression: C++ leaves the order of two open, and with it the text.
  const Var m_kept = beta1 * state[0];
  const Var m = m_kept + (1 - beta1) * g;
  const Var v_kept = beta2 * state[1];
  const Var v = v_kept + (1 - beta2) * (g * g);
  const Var direction = m / correction1;
  const Var scale = sqrt(v / correction2) + epsilon;
  return {p - rate * direction / scale, {m, v}};
}

}  // namespace mulgrad
