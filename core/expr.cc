#include "core/expr.h"

#include <numeric>
#include <utility>

#include "core/custom.h"

namespace mulgrad {
namespace {

Var unary(Op op, Var x) { return {x.builder(), x.builder().add(std::move(op), {x.id()})}; }

// The first operand that is a value: it lends its builder, and its dtype to the numbers.
const Var& first_var(std::initializer_list<const Term*> terms) {
  for (const Term* term : terms) {
    if (term->is_var()) return term->var();
  }
  throw Error(Category::invalid_literal, "every operand is a number, expected at least one tensor");
}

Var binary(Op op, const Term& a, const Term& b) {
  const Var& lead = first_var({&a, &b});
  const DType dtype = lead.dtype();
  return {lead.builder(), lead.builder().add(std::move(op), {a.operand(dtype), b.operand(dtype)})};
}

}  // namespace

std::optional<std::vector<std::optional<Var>>> CustomDefinition::derivative(const std::string&,
                                                                            std::span<const Var>,
                                                                            Var, Var) const {
  return std::nullopt;
}

Literal Scalar::as(DType dtype) const {
  if (const auto* literal = std::get_if<Literal>(&value_)) return *literal;
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) {
    return Literal::from_int(dtype, *integer);
  }
  if (const auto* integer = std::get_if<std::uint64_t>(&value_)) {  // above the largest i64
    const std::string text = std::to_string(*integer);
    if (const std::optional<Literal> literal = Literal::parse(dtype, text)) return *literal;
    throw Error(Category::invalid_literal,
                "found " + text + ", which does not fit dtype " + std::string(to_string(dtype)));
  }
  return Literal::from_double(dtype, std::get<double>(value_));
}

Operand Term::operand(DType dtype) const {
  if (is_var()) return var().id();
  return std::get<Scalar>(content_).as(dtype);
}

Var fill(Builder& builder, Literal value, Shape shape) {
  return {builder, builder.add(Fill{value, std::move(shape)}, {})};
}

Var constant(Builder& builder, Tensor value) {
  return {builder, builder.add(Constant{std::make_shared<const Tensor>(std::move(value))}, {})};
}

Var iota(Builder& builder, DType dtype, Shape shape, std::int64_t dimension) {
  return {builder, builder.add(Iota{dtype, std::move(shape), dimension}, {})};
}

Var operator-(Var x) { return unary(Negate{}, x); }
Var abs(Var x) { return unary(Abs{}, x); }
Var sign(Var x) { return unary(Sign{}, x); }
Var exp(Var x) { return unary(Exponential{}, x); }
Var expm1(Var x) { return unary(ExponentialMinusOne{}, x); }
Var log(Var x) { return unary(Log{}, x); }
Var log1p(Var x) { return unary(LogPlusOne{}, x); }
Var sqrt(Var x) { return unary(Sqrt{}, x); }
Var rsqrt(Var x) { return unary(Rsqrt{}, x); }
Var tanh(Var x) { return unary(Tanh{}, x); }
Var logistic(Var x) { return unary(Logistic{}, x); }
Var sin(Var x) { return unary(Sine{}, x); }
Var cos(Var x) { return unary(Cosine{}, x); }
Var floor(Var x) { return unary(Floor{}, x); }
Var ceil(Var x) { return unary(Ceil{}, x); }
Var round_nearest_even(Var x) { return unary(RoundNearestEven{}, x); }
Var erf(Var x) { return unary(Erf{}, x); }
Var logical_not(Var x) { return unary(Not{}, x); }
Var is_finite(Var x) { return unary(IsFinite{}, x); }
Var stop_gradient(Var x) { return unary(StopGradient{}, x); }
Var convert(Var x, DType dtype) { return unary(Convert{dtype}, x); }

Var operator+(Term a, Term b) { return binary(Add{}, a, b); }
Var operator-(Term a, Term b) { return binary(Subtract{}, a, b); }
Var operator*(Term a, Term b) { return binary(Multiply{}, a, b); }
Var operator/(Term a, Term b) { return binary(Divide{}, a, b); }
Var maximum(Term a, Term b) { return binary(Maximum{}, a, b); }
Var minimum(Term a, Term b) { return binary(Minimum{}, a, b); }
Var pow(Term a, Term b) { return binary(Power{}, a, b); }
Var logical_and(Var a, Var b) { return binary(And{}, a, b); }
Var logical_or(Var a, Var b) { return binary(Or{}, a, b); }
Var compare(Comparison direction, Term a, Term b) { return binary(Compare{direction}, a, b); }

Var select(Var predicate, Term on_true, Term on_false) {
  const DType dtype = first_var({&on_true, &on_false}).dtype();
  Builder& builder = predicate.builder();
  return {builder,
          builder.add(Select{}, {predicate.id(), on_true.operand(dtype), on_false.operand(dtype)})};
}

Var clamp(Term low, Var x, Term high) {
  return {x.builder(),
          x.builder().add(Clamp{}, {low.operand(x.dtype()), x.id(), high.operand(x.dtype())})};
}

Var broadcast_in_dim(Var x, Shape shape, Axes dims) {
  return unary(BroadcastInDim{std::move(shape), std::move(dims)}, x);
}

Var reshape(Var x, Shape shape) {
  return x.shape() == shape ? x : unary(Reshape{std::move(shape)}, x);
}

Var transpose(Var x, Axes permutation) { return unary(Transpose{std::move(permutation)}, x); }

Var transpose(Var x) {
  const Axes axes = all_axes(x);
  return transpose(x, Axes(axes.rbegin(), axes.rend()));
}

Var slice(Var x, std::vector<std::int64_t> start, std::vector<Dim> limit,
          std::vector<std::int64_t> stride) {
  if (stride.empty()) stride.assign(start.size(), 1);
  return unary(Slice{std::move(start), std::move(limit), std::move(stride)}, x);
}

Var concatenate(std::span<const Var> parts, std::int64_t dimension) {
  if (parts.empty()) {
    throw Error(Category::arity_mismatch, "concatenate: found no operand, expected at least one");
  }
  Builder& builder = parts[0].builder();
  std::vector<Operand> operands;
  for (const Var& part : parts) operands.emplace_back(part.id());
  return {builder, builder.add(Concatenate{dimension}, operands)};
}

Var pad(Var x, Var value, std::vector<std::int64_t> low, std::vector<std::int64_t> high,
        std::vector<std::int64_t> interior) {
  if (interior.empty()) interior.assign(low.size(), 0);
  Op op = Pad{std::move(low), std::move(high), std::move(interior)};
  return {x.builder(), x.builder().add(std::move(op), {x.id(), value.id()})};
}

Axes all_axes(Var x) {
  Axes axes(static_cast<std::size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Var reduce(Reduction kind, Var x, Axes axes, KeepDims keep) {
  const Var result = unary(Reduce{kind, axes}, x);
  if (keep == KeepDims::no) return result;
  Shape kept = x.shape();
  for (const std::int64_t axis : axes) kept[axis < 0 ? axis + kept.rank() : axis] = 1;
  return reshape(result, std::move(kept));
}

Var sum(Var x, Axes axes, KeepDims keep) {
  return reduce(Reduction::sum, x, std::move(axes), keep);
}
Var sum(Var x) { return sum(x, all_axes(x)); }

Var mean(Var x, Axes axes, KeepDims keep) {
  return unary(Mean{std::move(axes), keep == KeepDims::yes}, x);
}
Var mean(Var x) { return mean(x, all_axes(x)); }

Var matmul(Var a, Var b) { return dot_general(a, b, {{}, {}, {1}, {0}, a.dtype()}); }

Var dot_general(Var a, Var b, DotGeneral attributes) {
  return {a.builder(), a.builder().add(std::move(attributes), {a.id(), b.id()})};
}

}  // namespace mulgrad
