#include "tests/support/random_program.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "core/expr.h"

namespace mulgrad::testing {

std::uint64_t Draw64::bits() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

namespace {

// A program under construction. `visible` holds the values that later nodes may read.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : draw_(seed) {}

  void other_node();
  void plant_mean_derivative(int clause);
  void plant_mean(int clause);
  RandomProgram finish();
  Draw64& draw() { return draw_; }

 private:
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[draw_.below(std::ssize(choices))];
  }
  std::int64_t size() { return draw_.one_in(12) ? 7 + draw_.below(6) : 1 + draw_.below(5); }
  DType dtype() { return one_of({DType::f32, DType::f64}); }

  Var new_input(Type type) {
    const auto role = one_of({InputRole::input, InputRole::seed, InputRole::capture});
    return Var(builder_, builder_.input("x" + std::to_string(inputs_++), std::move(type), role));
  }
  Var show(Var value) {
    visible_.push_back(value);
    return value;
  }
  std::optional<Var> visible(const std::function<bool(const Type&)>& wanted) {
    std::vector<Var> found;
    for (const Var& value : visible_) {
      if (wanted(value.type())) found.push_back(value);
    }
    if (found.empty()) return std::nullopt;
    return found[static_cast<std::size_t>(draw_.below(std::ssize(found)))];
  }
  // A value of the type: one that is there, or a new input.
  Var value_of(Type type) {
    const auto found = visible([&](const Type& other) { return other == type; });
    if (found && !draw_.one_in(4)) return *found;
    return show(new_input(std::move(type)));
  }
  Var any_float() {
    const auto found = visible([](const Type& type) { return is_float(type.dtype); });
    return found ? *found : show(new_input({dtype(), {size(), size()}}));
  }
  Var any_matrix() {
    const auto found =
        visible([](const Type& type) { return is_float(type.dtype) && type.rank() == 2; });
    return found ? *found : show(new_input({dtype(), {size(), size()}}));
  }
  Literal number(DType dtype) { return Literal::from_double(dtype, one_of({2.5, -0.75, 7.25})); }

  void output(Var value, OutputRole role) {
    builder_.output("y" + std::to_string(outputs_++), value.id(), role);
  }
  void output(Var value) { output(value, one_of({OutputRole::output, OutputRole::capture})); }
  void plant(Var node, int clause) { plants_.push_back({node.id().index(), clause}); }
  // Lets the planted result be read in one of the ways that results are.
  void use(Var result);

  Var broadcast_of_one(Var g, Shape shape) {
    return broadcast_in_dim(g, std::move(shape), one_of<Axes>({{0, 1}, {1, 0}}));
  }

  void near_miss_of_the_form(Var b, Literal count);
  void near_miss_of_the_maker(DType dtype, std::int64_t r, std::int64_t c, Literal count);
  void near_miss_of_the_matrix(DType dtype, std::int64_t r, std::int64_t c);
  void near_miss_of_the_source(DType dtype, std::int64_t r, std::int64_t c);
  void near_miss_of_the_divisor(Var b, std::int64_t r, std::int64_t c);
  void near_miss_of_the_use(Var b, Literal count);

  Draw64 draw_;
  Builder builder_;
  std::vector<Var> visible_;
  std::vector<Plant> plants_;
  int inputs_ = 0;
  int outputs_ = 0;
};

void Maker::other_node() {
  const Var x = any_float();
  const DType dtype = x.dtype();
  switch (draw_.below(15)) {
    case 0:
      show(one_of<Var (*)(Var)>({tanh, abs, floor, sin, logistic})(x));
      break;
    case 1:
      show(-x);
      break;
    case 2:
      show(x + value_of(x.type()));
      break;
    case 3:
      show(x * value_of(x.type()));
      break;
    case 4:
      show(x - x);
      break;
    case 5:
      show(maximum(x, value_of(x.type())));
      break;
    case 6:  // no count is such a number
      show(x / number(dtype));
      break;
    case 7:
      show(draw_.one_in(2) ? x * number(dtype) : number(dtype) - x);
      break;
    case 8:
      show(x / value_of(x.type()));
      break;
    case 9:
      show(select(compare(Comparison::LT, x, number(dtype)), x, value_of(x.type())));
      break;
    case 10:
      show(transpose(any_matrix()));
      break;
    case 11: {  // a broadcast that is no part of a region
      const Var g = value_of({dtype, {1, 1}});
      show(broadcast_of_one(g, {size(), size()}));
      break;
    }
    case 12: {
      const Var matrix = any_matrix();
      show(one_of<std::function<Var()>>({[&] { return sum(matrix, {0}); },
                                         [&] { return sum(matrix, {1}, KeepDims::yes); },
                                         [&] {
                                           return sum(matrix, {0, 1}, KeepDims::yes);
                                         }})());
      break;
    }
    case 13: {
      const Var matrix = any_matrix();
      const Var right = value_of({matrix.dtype(), {matrix.shape()[1], size()}});
      show(matmul(matrix, right));
      break;
    }
    default:
      show(draw_.one_in(2) ? reshape(x, {x.shape().elements()})
                           : convert(x, dtype == DType::f32 ? DType::f64 : DType::f32));
  }
}

void Maker::use(Var result) {
  const bool is_static = result.type().shape.is_static();
  switch (is_static ? draw_.below(6) : draw_.below(2)) {
    case 0:
      output(result);
      break;
    case 1:  // nothing reads it
      break;
    case 2:
      show(result * result);
      break;
    case 3:
      output(result);
      [[fallthrough]];
    default:
      show(show(result));  // twice as likely to be read
  }
}

// Clause 1: another form than divide(value, finite literal).
void Maker::near_miss_of_the_form(Var b, Literal count) {
  const DType dtype = b.dtype();
  const auto quotient = [&]() -> Var {
    switch (draw_.below(7)) {
      case 0:
        return b / Literal::infinity(dtype, draw_.one_in(2));
      case 1:
        return b / Literal::from_double(dtype, std::numeric_limits<double>::quiet_NaN());
      case 2:
        return count / b;
      case 3: {
        const Var divisor = fill(builder_, count, b.shape());
        return b / divisor;
      }
      case 4: {
        const Var divisor = fill(builder_, count, {});
        return b / divisor;
      }
      case 5:
        return b / value_of(b.type());
      default:
        return b / b;
    }
  };
  if (draw_.one_in(6)) {  // no divide at all
    plant(b, 1);
    use(b * Literal::from_double(dtype, 1 / count.as_double()));
    return;
  }
  const Var q = quotient();
  plant(q, 1);
  use(q);
}

// Clause 2: something else than a broadcast made b.
void Maker::near_miss_of_the_maker(DType dtype, std::int64_t r, std::int64_t c, Literal count) {
  const Type type{dtype, {r, c}};
  const auto other = [&]() -> Var {
    switch (draw_.below(6)) {
      case 0:
        return new_input(type);
      case 1:
        return -broadcast_of_one(value_of({dtype, {1, 1}}), {r, c});
      case 2: {
        const Var left = value_of(type);
        return left + value_of(type);
      }
      case 3:
        return reshape(value_of({dtype, {r * c}}), {r, c});
      case 4: {
        const Var left = value_of({dtype, {r, 1}});
        return matmul(left, value_of({dtype, {1, c}}));
      }
      default:
        return new_input({dtype, {1, 1}});  // the divide stands before the broadcast
    }
  };
  const Var b = other();
  const Var q = b / count;
  plant(q, 2);
  use(b.type() == type ? q : broadcast_of_one(q, {r, c}));
}

// Clause 3: b is no static matrix of f32 or f64 with elements.
void Maker::near_miss_of_the_matrix(DType dtype, std::int64_t r, std::int64_t c) {
  const auto divided = [&](Var b, std::int64_t count) {
    const Var q = b / Literal::from_int(b.dtype(), count);
    plant(q, 3);
    if (is_float(q.dtype())) {
      use(q);
    } else {
      output(q);
    }
  };
  switch (draw_.below(6)) {
    case 0:
      return divided(broadcast_in_dim(value_of({dtype, {1}}), {r}, {0}), r);
    case 1:
      return divided(broadcast_in_dim(value_of({dtype, {}}), {}, {}), 1);
    case 2:
      return divided(broadcast_in_dim(value_of({dtype, {1, 1}}), {1, r, c}, {1, 2}), r * c);
    case 3: {
      const Shape empty = draw_.one_in(2) ? Shape{0, c} : Shape{r, 0};
      return divided(broadcast_of_one(value_of({dtype, {1, 1}}), empty), draw_.one_in(2) ? 0 : c);
    }
    case 4:
      return divided(broadcast_of_one(value_of({dtype, {1, 1}}), {Dim::symbol("B"), c}), 3 * c);
    default: {
      const DType other = one_of({DType::f16, DType::bf16, DType::i32});
      return divided(broadcast_of_one(new_input({other, {1, 1}}), {r, c}), r * c);
    }
  }
}

// Clause 4: the source has more than one element, or fewer axes.
void Maker::near_miss_of_the_source(DType dtype, std::int64_t r, std::int64_t c) {
  r += r == 1;
  c += c == 1;
  const auto b = [&]() -> Var {
    switch (draw_.below(6)) {
      case 0:
        return broadcast_in_dim(value_of({dtype, {1, c}}), {r, c}, {0, 1});
      case 1:
        return broadcast_in_dim(value_of({dtype, {r, 1}}), {r, c}, {0, 1});
      case 2:
        return broadcast_in_dim(value_of({dtype, {}}), {r, c}, {});
      case 3:
        return broadcast_in_dim(value_of({dtype, {1}}), {r, c}, {draw_.below(2)});
      case 4:
        return broadcast_in_dim(value_of({dtype, {c}}), {r, c}, {1});
      default:
        return broadcast_in_dim(value_of({dtype, {r, c}}), {r, c}, {0, 1});
    }
  };
  const Var q = b() / Literal::from_int(dtype, r * c);
  plant(q, 4);
  use(q);
}

// Clause 5: another finite number than the count.
void Maker::near_miss_of_the_divisor(Var b, std::int64_t r, std::int64_t c) {
  const auto count = static_cast<double>(r * c);
  const double above = b.dtype() == DType::f32 ? std::nextafter(static_cast<float>(count), 1e9F)
                                               : std::nextafter(count, 1e9);
  double d = count;
  while (d == count) {
    d = one_of({count + 1, count - 1, static_cast<double>(r + c), static_cast<double>(r),
                static_cast<double>(c), -count, 0.0, 2 * count, 1 / count, above});
  }
  const Var q = b / Literal::from_double(b.dtype(), d);
  plant(q, 5);
  use(q);
}

// Clause 7: b has another use.
void Maker::near_miss_of_the_use(Var b, Literal count) {
  const Var q = b / count;
  plant(q, 7);
  use(q);
  switch (draw_.below(6)) {
    case 0:
      return output(b, OutputRole::output);
    case 1:
      return output(b, OutputRole::capture);
    case 2:
      show(b * b);
      return;
    case 3:  // a use that nothing reads is a use
      -b;
      return;
    case 4:
      show(b + number(b.dtype()));
      return;
    default: {
      const Var second = b / count;
      plant(second, 7);
      use(second);
    }
  }
}

void Maker::plant_mean_derivative(int clause) {
  const DType dtype = this->dtype();
  const std::int64_t r = size();
  const std::int64_t c = size();
  const Literal count = Literal::from_int(dtype, r * c);
  if (clause == 2) return near_miss_of_the_maker(dtype, r, c, count);
  if (clause == 3) return near_miss_of_the_matrix(dtype, r, c);
  if (clause == 4) return near_miss_of_the_source(dtype, r, c);
  const Var g = draw_.one_in(8) ? fill(builder_, number(dtype), {1, 1}) : value_of({dtype, {1, 1}});
  const Var b = broadcast_of_one(g, {r, c});
  if (clause == 1) return near_miss_of_the_form(b, count);
  if (clause == 5) return near_miss_of_the_divisor(b, r, c);
  if (clause == 7) return near_miss_of_the_use(b, count);
  if (draw_.one_in(3)) other_node();  // b and q need not be neighbours
  const Var q = b / count;
  plant(q, Plant::kGood);
  use(q);
}

void Maker::plant_mean(int clause) {
  const DType dtype = this->dtype();
  const KeepDims keep = one_of({KeepDims::no, KeepDims::yes});
  const Axes both = one_of<Axes>({{0, 1}, {1, 0}, {-1, -2}});
  const auto make = [&]() -> Var {
    switch (clause) {
      case 2:
        if (draw_.one_in(3)) return mean(value_of({dtype, {size()}}), {0}, keep);
        if (draw_.one_in(4)) return mean(value_of({dtype, {}}), {}, keep);
        return mean(value_of({dtype, {size(), 2, size()}}), one_of<Axes>({{0, 1, 2}, {0, 2}}),
                    keep);
      case 3: {
        const auto rows = draw_.one_in(3) ? Dim::symbol("B") : Dim(size());
        const Axes axes = one_of<Axes>({{0}, {1}, {}});
        return mean(rows.is_static() ? value_of({dtype, {rows, size()}})
                                     : new_input({dtype, {rows, size()}}),
                    axes, keep);
      }
      case 4:
        if (draw_.one_in(2))
          return mean(new_input({dtype, {Dim::symbol("B"), size()}}), both, keep);
        return mean(value_of({dtype, draw_.one_in(2) ? Shape{0, size()} : Shape{size(), 0}}), both,
                    keep);
      case 5:
        return mean(new_input({one_of({DType::f16, DType::bf16}), {size(), size()}}), both, keep);
      default:
        return mean(value_of({dtype, {size(), size()}}), both, keep);
    }
  };
  const Var m = make();
  if (draw_.one_in(6)) {
    plant(m, Plant::kUnreached);
    return;
  }
  plant(m, clause);
  output(m);
  if (m.type().shape.is_static() && draw_.one_in(2)) show(m);
}

RandomProgram Maker::finish() {
  const std::int64_t more = 1 + draw_.below(3);
  for (std::int64_t i = 0; i < more || outputs_ == 0; ++i) output(any_float());
  return {builder_.finish(), std::move(plants_)};
}

template <std::size_t N>
RandomProgram random_program(std::uint64_t seed, const int (&clauses)[N],
                             void (Maker::*plant)(int clause)) {
  Maker maker(seed);
  Draw64& draw = maker.draw();
  std::vector<int> planted;
  const bool near_miss = draw.one_in(2);
  if (near_miss) planted.push_back(clauses[draw.below(std::ssize(clauses))]);
  if (!near_miss || draw.one_in(5)) planted.push_back(Plant::kGood);
  if (!near_miss && draw.one_in(4)) planted.push_back(Plant::kGood);
  if (draw.one_in(2)) std::reverse(planted.begin(), planted.end());
  for (const int clause : planted) {
    for (std::int64_t i = 1 + draw.below(5); i > 0; --i) maker.other_node();
    (maker.*plant)(clause);
  }
  for (std::int64_t i = 2 + draw.below(5); i > 0; --i) maker.other_node();
  return maker.finish();
}

}  // namespace

RandomProgram random_mean_derivative(std::uint64_t seed) {
  return random_program(seed, kMeanDerivativeClauses, &Maker::plant_mean_derivative);
}

RandomProgram random_mean(std::uint64_t seed) {
  return random_program(seed, kMeanClauses, &Maker::plant_mean);
}

}  // namespace mulgrad::testing
