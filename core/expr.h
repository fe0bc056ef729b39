// Var: an expression handle on a Builder, so that programs, derivative rules and rewrites read as
// the maths they are. Each function appends one node (or none) and throws what Builder throws.
// C++ leaves open which operand of f(a(x), b(x)) is evaluated first; where the order of the nodes
// matters (text, goldens, hashes), name all but one of the operands that make nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/builder.h"

namespace mulgrad {

class Var {
 public:
  Var(Builder& builder, ValueId id) : builder_(&builder), id_(id) {}

  Builder& builder() const { return *builder_; }
  ValueId id() const { return id_; }
  // By value: a reference into the builder would not outlive the next node.
  Type type() const { return builder_->type(id_); }
  DType dtype() const { return builder_->type(id_).dtype; }
  Shape shape() const { return builder_->type(id_).shape; }
  std::int64_t rank() const { return builder_->type(id_).rank(); }

 private:
  Builder* builder_;
  ValueId id_;
};

// A number that becomes a literal of the dtype that its position demands, rounded once.
class Scalar {
 public:
  template <class T>
  requires std::is_floating_point_v<T> Scalar(T value)
      : value_(static_cast<double>(value)) {}  // NOLINT: numbers convert
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Scalar(T value) {  // NOLINT
    if (std::in_range<std::int64_t>(value)) {
      value_ = static_cast<std::int64_t>(value);
    } else {
      value_ = static_cast<std::uint64_t>(value);
    }
  }
  Scalar(Literal literal) : value_(literal) {}  // NOLINT

  Literal as(DType dtype) const;

 private:
  std::variant<double, std::int64_t, std::uint64_t, Literal> value_;
};

// A value or a number in operand position of an elementwise function.
class Term {
 public:
  Term(Var var) : content_(var) {}  // NOLINT: terms convert
  template <class T>
  requires std::is_convertible_v<T, Scalar> Term(T scalar) : content_(Scalar(scalar)) {}  // NOLINT
  bool is_var() const { return content_.index() == 0; }
  const Var& var() const { return std::get<Var>(content_); }
  Operand operand(DType dtype) const;

 private:
  std::variant<Var, Scalar> content_;
};

// Creation. Shapes may be symbolic.
Var fill(Builder& builder, Literal value, Shape shape);
Var constant(Builder& builder, Tensor value);
Var iota(Builder& builder, DType dtype, Shape shape, std::int64_t dimension);

// Elementwise, one operand.
Var operator-(Var x);
Var abs(Var x);
Var sign(Var x);
Var exp(Var x);
Var expm1(Var x);
Var log(Var x);
Var log1p(Var x);
Var sqrt(Var x);
Var rsqrt(Var x);
Var tanh(Var x);
Var logistic(Var x);
Var sin(Var x);
Var cos(Var x);
Var floor(Var x);
Var ceil(Var x);
Var round_nearest_even(Var x);
Var erf(Var x);
Var logical_not(Var x);
Var is_finite(Var x);
Var stop_gradient(Var x);
Var convert(Var x, DType dtype);  // also when x already has the dtype

// Elementwise, more operands: broadcasting as core/inference.h says; at most one operand of a
// binary function is a number.
Var operator+(Term a, Term b);
Var operator-(Term a, Term b);
Var operator*(Term a, Term b);
Var operator/(Term a, Term b);
Var maximum(Term a, Term b);
Var minimum(Term a, Term b);
Var pow(Term a, Term b);
Var logical_and(Var a, Var b);
Var logical_or(Var a, Var b);
Var compare(Comparison direction, Term a, Term b);
Var select(Var predicate, Term on_true, Term on_false);
Var clamp(Term low, Var x, Term high);

// Movement.
Var broadcast_in_dim(Var x, Shape shape, Axes dims);
Var reshape(Var x, Shape shape);  // no node when x has the shape already
Var transpose(Var x, Axes permutation);
Var transpose(Var x);  // reverses the axes
Var slice(Var x, std::vector<std::int64_t> start, std::vector<Dim> limit,
          std::vector<std::int64_t> stride = {});  // strides are 1 by default
Var concatenate(std::span<const Var> parts, std::int64_t dimension);
Var pad(Var x, Var value, std::vector<std::int64_t> low, std::vector<std::int64_t> high,
        std::vector<std::int64_t> interior = {});

enum class KeepDims : std::uint8_t { no, yes };

// Reductions; an empty `axes` means none, all_axes(x) means all.
Axes all_axes(Var x);
Var reduce(Reduction kind, Var x, Axes axes, KeepDims keep = KeepDims::no);  // yes: and a reshape
Var sum(Var x, Axes axes, KeepDims keep = KeepDims::no);
Var sum(Var x);
Var mean(Var x, Axes axes, KeepDims keep = KeepDims::no);
Var mean(Var x);

// Products. matmul is the plain rank-2 product contracting [1] x [0].
Var matmul(Var a, Var b);
Var dot_general(Var a, Var b, DotGeneral attributes);

}  // namespace mulgrad
