// Layers: emitters of the expression that they compute. A layer holds no numbers; its parameters
// come in as values, so one layer traces into any number of programs.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/parameters.h"
#include "core/expr.h"

namespace mulgrad {

class Layer {
 public:
  virtual ~Layer() = default;

  // What forward() takes, in order; names are unique within the layer.
  virtual std::vector<Parameter> parameters() const = 0;

  // The layer applied to x. Throws invalid_argument when the number or a type of the parameters is
  // not as parameters() says, and what the layer's own expression throws.
  Var forward(Var x, std::span<const Var> parameters) const;

 protected:
  Layer() = default;
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = default;

 private:
  virtual Var emit(Var x, std::span<const Var> parameters) const = 0;
};

// x[B,in] @ weight[in,out] + bias[1,out]. Both parameters start uniform within 1/sqrt(in), as
// PyTorch's Linear does. Throws invalid_argument for a size below 1 and dtype_mismatch for a dtype
// other than float; forward() throws shape_mismatch unless x has rank 2.
class Linear : public Layer {
 public:
  Linear(std::int64_t in, std::int64_t out, DType dtype = DType::f32);
  std::vector<Parameter> parameters() const override;

 private:
  Var emit(Var x, std::span<const Var> parameters) const override;
  std::int64_t in_;
  std::int64_t out_;
  DType dtype_;
};

// max(x, 0), elementwise on any shape. The derivative at 0 is 0.
class ReLU : public Layer {
 public:
  std::vector<Parameter> parameters() const override { return {}; }

 private:
  Var emit(Var x, std::span<const Var> parameters) const override;
};

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

 private:
  Var emit(Var x, std::span<const Var> parameters) const override;
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace mulgrad
