// The base of all layers, and layers made of layers. A layer is an emitter of the expression that
// it computes. It holds no numbers; its parameters come in as values, so one layer traces into any
// number of programs.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/parameters.h"
#include "core/expr.h"

namespace mulgrad {

enum class Mode : std::uint8_t { train, evaluate };

// What a layer may ask of whoever traces it.
struct LayerContext {
  Mode mode = Mode::evaluate;
  // Makes an input of that shape: f32 numbers, uniform in [0, 1), new in every step. Asked in
  // training mode alone.
  std::function<Var(const Shape&)> uniform = {};
  // [B,T] of a float or integer dtype or i1: 0 where a sequence has no token, so that attention
  // does not look there. Absent: every place holds one.
  std::optional<Var> padding = std::nullopt;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // What forward() takes, in order; names are unique within the layer.
  virtual std::vector<Parameter> parameters() const = 0;

  // Where the layer takes integers as input: they are ids in 0 .. ids()-1, and whoever reads the
  // data checks that.
  virtual std::optional<std::int64_t> ids() const { return std::nullopt; }

  // What the layer is, one line for it and each layer in it: its name, and the settings that change
  // what it computes in evaluation and that its parameters do not show: "GELU(erf)". Checkpoints
  // hold it to tell models apart, so it stays as it is whatever expression the layer emits. A layer
  // that does not override it is not told apart from others that do not.
  virtual std::vector<std::string> description() const { return {"Layer"}; }

  // The layer applied to x, by default as it is evaluated. Throws invalid_argument when the number
  // or a type of the parameters is not as parameters() says, and what the layer's own expression
  // throws.
  Var forward(Var x, std::span<const Var> parameters, const LayerContext& context = {}) const;

 protected:
  Layer() = default;
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = default;

 private:
  virtual Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const = 0;
};

// What constructors of layers check: throw invalid_argument for a size below 1, dtype_mismatch for
// a dtype other than float, naming the layer.
void expect_size(const char* layer, std::int64_t size);
void expect_float(const char* layer, DType dtype);

// The parameters with `prefix` and a point before each name.
std::vector<Parameter> prefixed(const std::string& prefix, std::vector<Parameter> parameters);

// The lines with `prefix` and a point before each.
std::vector<std::string> prefixed(const std::string& prefix, std::vector<std::string> lines);

// One layer after the other: Sequential{Linear(64, 64), ReLU(), Linear(64, 10)}. Copies share the
// layers, which never change. Parameter `weight` of layer i is named "layer<i>.weight".
class Sequential : public Layer {
 public:
  template <class... Layers>
  requires(std::derived_from<Layers, Layer>&&...) explicit Sequential(Layers... layers)
      : Sequential(std::vector<std::shared_ptr<const Layer>>{
            std::make_shared<const Layers>(std::move(layers))...}) {}
  // For a depth known at run time. Throws invalid_argument for a null entry.
  explicit Sequential(std::vector<std::shared_ptr<const Layer>> layers);

  std::vector<Parameter> parameters() const override;
  std::optional<std::int64_t> ids() const override;  // those of the first layer
  std::vector<std::string> description() const override;

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::vector<std::shared_ptr<const Layer>> layers_;
};

// x + layer(x), for a layer whose result has the type of its input. Throws shape_mismatch or
// dtype_mismatch for another one: what broadcasts would no longer be the input passed on. The
// parameters keep their names.
class Residual : public Layer {
 public:
  template <std::derived_from<Layer> L>
  explicit Residual(L layer) : layer_(std::make_shared<const L>(std::move(layer))) {}

  std::vector<Parameter> parameters() const override { return layer_->parameters(); }
  std::vector<std::string> description() const override {
    return prefixed("Residual", layer_->description());
  }

 private:
  Var emit(Var x, std::span<const Var> parameters, const LayerContext& context) const override;
  std::shared_ptr<const Layer> layer_;
};

}  // namespace mulgrad
