// One rule per op. Names: operands as in the formula, `y` the result, `dy` its cotangent; each
// operand that is wanted gets its cotangent by add(). A rule that lacks does not compile.
//
// The order of arguments is not the order of their evaluation, and nodes are numbered as they are
// made: so an expression makes nodes in one of its arguments only.
#include "autodiff/rules.h"

#include <algorithm>
#include <concepts>
#include <numbers>
#include <numeric>

#include "core/custom.h"

namespace mulgrad {
namespace {

template <class T, class... Ts>
concept OneOf = (std::same_as<T, Ts> || ...);

// Zero almost everywhere, or no float in it: contributes nothing.
template <class T>
concept HasZeroDerivative = OneOf<T, Fill, Constant, Iota, Sign, Floor, Ceil, RoundNearestEven, Not,
                                  IsFinite, StopGradient, And, Or, Compare>;

// ---- One operand -------------------------------------------------------------------------------

// y = -x: dx = -dy
void rule(const Negate&, Primal x, Primal, Var dy) { x.add(-dy); }

// y = |x|: dx = dy sign(x); 0 at the kink
void rule(const Abs&, Primal x, Primal, Var dy) { x.add(dy * sign(x)); }

// y = e^x: dx = dy y
void rule(const Exponential&, Primal x, Primal y, Var dy) { x.add(dy * y); }

// y = e^x - 1: dx = dy (y + 1)
void rule(const ExponentialMinusOne&, Primal x, Primal y, Var dy) { x.add(dy * (y + 1)); }

// y = ln x: dx = dy / x
void rule(const Log&, Primal x, Primal, Var dy) { x.add(dy / x); }

// y = ln(1 + x): dx = dy / (x + 1)
void rule(const LogPlusOne&, Primal x, Primal, Var dy) { x.add(dy / (x + 1)); }

// y = x^(1/2): dx = dy / (2 y); infinite at 0
void rule(const Sqrt&, Primal x, Primal y, Var dy) { x.add(dy / (y * 2)); }

// y = x^(-1/2): dx = dy y / (-2 x)
void rule(const Rsqrt&, Primal x, Primal y, Var dy) {
  const Var twice = x * -2;
  x.add(dy * (y / twice));
}

// y = tanh x: dx = dy (1 - y^2)
void rule(const Tanh&, Primal x, Primal y, Var dy) { x.add(dy * (1 - y * y)); }

// y = 1 / (1 + e^-x): dx = dy y (1 - y)
void rule(const Logistic&, Primal x, Primal y, Var dy) { x.add(dy * (y * (1 - y))); }

// y = sin x: dx = dy cos x
void rule(const Sine&, Primal x, Primal, Var dy) { x.add(dy * cos(x)); }

// y = cos x: dx = -dy sin x
void rule(const Cosine&, Primal x, Primal, Var dy) { x.add(-(dy * sin(x))); }

// y = erf x: dx = dy 2 / sqrt(pi) e^(-x^2)
void rule(const Erf&, Primal x, Primal, Var dy) {
  x.add(dy * (exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi)));
}

// The same number in another float dtype: dx = dy
void rule(const Convert&, Primal x, Primal, Var dy) { x.add(convert(dy, x.dtype())); }

// ---- Two or three operands ---------------------------------------------------------------------

// y = a + b: da = dy, db = dy
void rule(const Add&, Primal a, Primal b, Primal, Var dy) {
  if (a.wanted()) a.add(dy);
  if (b.wanted()) b.add(dy);
}

// y = a - b: da = dy, db = -dy
void rule(const Subtract&, Primal a, Primal b, Primal, Var dy) {
  if (a.wanted()) a.add(dy);
  if (b.wanted()) b.add(-dy);
}

// y = a b: da = dy b, db = dy a
void rule(const Multiply&, Primal a, Primal b, Primal, Var dy) {
  if (a.wanted()) a.add(dy * b);
  if (b.wanted()) b.add(dy * a);
}

// y = a / b: da = dy / b, db = -(dy / b) y
void rule(const Divide&, Primal a, Primal b, Primal y, Var dy) {
  const Var da = dy / b;
  if (a.wanted()) a.add(da);
  if (b.wanted()) b.add(-(da * y));
}

// What an operand gets at a tie with another one.
enum class Tie : std::uint8_t { nothing, half };

// A variable that ties with a constant sits at a kink of its own, like relu at 0, and gets nothing.
Tie tie_with(Primal other) { return other.is_constant() ? Tie::nothing : Tie::half; }

// The part of `dy` for `mine`: all of it where `mine wins other`, some at a tie, else 0.
Var share(Var dy, Comparison wins, Term mine, Term other, Tie tie) {
  const Var won = compare(wins, mine, other);
  if (tie == Tie::nothing) return select(won, dy, 0);
  const Var tied = compare(Comparison::EQ, mine, other);
  const Var half = select(tied, dy * 0.5, 0);
  return select(won, dy, half);
}

void share_both(Var dy, Comparison wins, Primal a, Primal b) {
  if (a.wanted()) a.add(share(dy, wins, a, b, tie_with(b)));
  if (b.wanted()) b.add(share(dy, wins, b, a, tie_with(a)));
}

// y = max(a, b): da = dy [a > b], db = dy [b > a]; ties as in tie_with()
void rule(const Maximum&, Primal a, Primal b, Primal, Var dy) {
  share_both(dy, Comparison::GT, a, b);
}

// y = min(a, b): da = dy [a < b], db = dy [b < a]; ties as in tie_with()
void rule(const Minimum&, Primal a, Primal b, Primal, Var dy) {
  share_both(dy, Comparison::LT, a, b);
}

// y = min(t, high), t = max(low, x): as the two; ties as in tie_with()
void rule(const Clamp&, Primal low, Primal x, Primal high, Primal, Var dy) {
  const Var t = maximum(low, x);
  if (high.wanted()) high.add(share(dy, Comparison::LT, high, t, Tie::half));
  if (!low.wanted() && !x.wanted()) return;
  const Var dt = share(dy, Comparison::LT, t, high, tie_with(high));
  share_both(dt, Comparison::GT, low, x);
}

// y = p ? a : b: da = p ? dy : 0, db = p ? 0 : dy
void rule(const Select&, Primal p, Primal a, Primal b, Primal, Var dy) {
  if (a.wanted()) a.add(select(p, dy, 0));
  if (b.wanted()) b.add(select(p, 0, dy));
}

// b a^(b-1), and 0 where b = 0, whatever a is
Var power_slope(Primal a, Primal b) {
  if (b.is_literal()) {
    const double lower = b.literal().as_double() - 1;
    return (lower == 1 ? Var(a) : pow(a, lower)) * b;
  }
  const Var exponent = b;
  const Var lower = exponent - 1;
  const Var slope = pow(a, lower) * exponent;
  return select(compare(Comparison::EQ, exponent, 0), 0, slope);
}

// y = a^b: da = dy b a^(b-1), and 0 where b = 0; db = dy y ln a, and 0 where y = 0, so at 0^2
void rule(const Power&, Primal a, Primal b, Primal y, Var dy) {
  const bool is_one = b.is_literal() && b.literal().as_double() == 0;
  if (a.wanted()) a.add(dy * (is_one ? Term(0) : power_slope(a, b)));
  if (!b.wanted()) return;
  const Var slope = log(a) * y;
  b.add(dy * select(compare(Comparison::EQ, y, 0), 0, slope));
}

// ---- Movement ----------------------------------------------------------------------------------

Axes range(std::int64_t first, std::int64_t size) {
  Axes axes(static_cast<std::size_t>(size));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

bool contains(const Axes& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// The axes of a tensor of that rank that are in neither list, ascending.
Axes other_axes(std::int64_t rank, const Axes& a, const Axes& b = {}) {
  Axes axes;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (!contains(a, axis) && !contains(b, axis)) axes.push_back(axis);
  }
  return axes;
}

// Moves axis k of x to the place order[k].
Var place_axes(Var x, const Axes& order) {
  Axes permutation(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    permutation[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  }
  return std::is_sorted(order.begin(), order.end()) ? x : transpose(x, std::move(permutation));
}

Var zero_like(Var x) { return fill(x.builder(), Literal::zero(x.dtype()), {}); }

// y repeats x along new axes and those of size 1: dx = the sum of dy over them
void rule(const BroadcastInDim& op, Primal x, Primal y, Var dy) {
  // Once x's axes stand in their own order behind the new ones, only sizes are left to undo.
  const Axes added = other_axes(y.rank(), op.dims);
  const bool ordered = std::is_sorted(op.dims.begin(), op.dims.end());
  const Axes dims = ordered ? op.dims : range(std::ssize(added), x.rank());
  Axes order = added;
  order.insert(order.end(), op.dims.begin(), op.dims.end());
  const Var d = ordered ? dy : transpose(dy, order);
  Axes grown;
  for (std::int64_t axis = 0; axis < d.rank(); ++axis) {
    const auto found = std::find(dims.begin(), dims.end(), axis);
    const bool was_one = found == dims.end() || x.shape()[found - dims.begin()] == Dim(1);
    if (was_one && !(d.shape()[axis] == Dim(1))) grown.push_back(axis);
  }
  x.add(reshape(grown.empty() ? d : sum(d, grown), x.shape()));
}

// The same elements in order: dx = dy
void rule(const Reshape&, Primal x, Primal, Var dy) { x.add(reshape(dy, x.shape())); }

// Axis i of y is axis p[i] of x: dx = dy, its axes moved back
void rule(const Transpose& op, Primal x, Primal, Var dy) {
  Axes inverse(op.permutation.size());
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    inverse[static_cast<std::size_t>(op.permutation[i])] = static_cast<std::int64_t>(i);
  }
  x.add(transpose(dy, std::move(inverse)));
}

// y[i] = x[start + i stride]: dx = dy at those places, 0 at the others
void rule(const Slice& op, Primal x, Primal y, Var dy) {
  std::vector<std::int64_t> high(op.start.size());
  std::vector<std::int64_t> interior(op.start.size());
  for (std::size_t i = 0; i < op.start.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (y.shape()[axis] == x.shape()[axis]) continue;  // the whole axis, also a symbolic one
    const std::int64_t n = y.shape()[axis].size();
    interior[i] = op.stride[i] - 1;
    high[i] = x.shape()[axis].size() - op.start[i] - (n > 0 ? (n - 1) * op.stride[i] + 1 : 0);
  }
  x.add(pad(dy, zero_like(dy), op.start, std::move(high), std::move(interior)));
}

// y = the parts one behind another: the cotangent of each is its slice of dy
void rule(const Concatenate& op, std::span<const Primal> parts, Primal, Var dy) {
  std::vector<std::int64_t> start(static_cast<std::size_t>(dy.rank()));
  for (const Primal& part : parts) {
    const std::int64_t size = part.shape()[op.dimension].size();
    Shape limit = part.shape();
    std::int64_t& first = start[static_cast<std::size_t>(op.dimension)];
    limit[op.dimension] = first + size;
    if (part.wanted()) part.add(slice(dy, start, {limit.begin(), limit.end()}));
    first += size;
  }
}

// The part of dy that came from the operand of a pad: y[low + i (interior + 1)] = x[i]
Var unpad(const Pad& op, const Shape& shape, Var dy) {
  std::vector<std::int64_t> start, stride, cropped_low, cropped_high;
  std::vector<Dim> limit;
  for (std::size_t i = 0; i < op.low.size(); ++i) {
    const Dim& size = shape[static_cast<std::int64_t>(i)];
    cropped_low.push_back(std::max<std::int64_t>(0, -op.low[i]));
    cropped_high.push_back(std::max<std::int64_t>(0, -op.high[i]));
    start.push_back(std::max<std::int64_t>(0, op.low[i]));
    stride.push_back(op.interior[i] + 1);
    const bool whole = op.low[i] == 0 && op.high[i] == 0 && op.interior[i] == 0;
    limit.push_back(
        whole ? size : start[i] + std::max<std::int64_t>(0, (size.size() - 1) * stride[i] + 1));
  }
  const auto positive = [](std::int64_t n) { return n > 0; };
  const bool crops =
      std::ranges::any_of(cropped_low, positive) || std::ranges::any_of(cropped_high, positive);
  // What was cropped away gets 0.
  if (crops) dy = pad(dy, zero_like(dy), std::move(cropped_low), std::move(cropped_high));
  return slice(dy, std::move(start), std::move(limit), std::move(stride));
}

// y = x with v around and between: dx = dy at the places of x, dv = the sum of dy over the others
void rule(const Pad& op, Primal x, Primal v, Primal, Var dy) {
  if (x.wanted()) x.add(unpad(op, x.shape(), dy));
  if (!v.wanted()) return;
  const Var inside = fill(dy.builder(), Literal::zero(dy.dtype()), x.shape());
  const Var outside = fill(dy.builder(), Literal::one(dy.dtype()), {});
  const Var mask = pad(inside, outside, op.low, op.high, op.interior);
  v.add(sum(select(compare(Comparison::NE, mask, 0), dy, 0)));
}

// ---- Reductions --------------------------------------------------------------------------------

// Repeats a value of the reduced shape along the reduced axes.
Var spread(Var reduced, const Axes& axes, Primal x) {
  return broadcast_in_dim(reduced, x.shape(), other_axes(x.rank(), axes));
}

// y = max or min of x: dx = dy shared equally by the elements that equal y
void share_extremum(const Axes& axes, Primal x, Primal y, Var dy) {
  const Var extremum = spread(y, axes, x);
  const Var tied = compare(Comparison::EQ, x, extremum);
  const Var each = dy / sum(convert(tied, x.dtype()), axes);
  x.add(select(tied, spread(each, axes, x), 0));
}

// Element i is the product of the others along the axis: of those before it, times of those behind
// it, each in doubling steps. Needs no division, so zeros are right, in derivatives of it too.
Var product_of_others(Var x, std::int64_t axis) {
  const std::int64_t n = x.shape()[axis].size();
  const Var one = fill(x.builder(), Literal::one(x.dtype()), {});
  const auto shift = [&](Var v, std::int64_t by) {
    std::vector<std::int64_t> low(static_cast<std::size_t>(v.rank()));
    low[static_cast<std::size_t>(axis)] = by;
    std::vector<std::int64_t> high(low.size());
    high[static_cast<std::size_t>(axis)] = -by;
    return pad(v, one, std::move(low), std::move(high));
  };
  const auto product_of_side = [&](std::int64_t direction) {
    Var result = shift(x, direction);
    for (std::int64_t reach = 1; reach < n - 1; reach *= 2) {
      result = result * shift(result, direction * reach);
    }
    return result;
  };
  const Var before = product_of_side(1);
  const Var behind = product_of_side(-1);
  return before * behind;
}

// y = the product of x over axes: dx = dy times the product of the other elements; axis by axis
void share_product(const Axes& axes, Primal x, Var dy) {
  Var d = spread(dy, axes, x);
  Var part = x;  // x reduced over the axes seen so far, which keep size 1
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) part = reduce(Reduction::product, part, {axes[i - 1]}, KeepDims::yes);
    d = d * product_of_others(part, axes[i]);
  }
  x.add(d);
}

// Sum: dx = dy at every element. The logical ones have no float operands.
void rule(const Reduce& op, Primal x, Primal y, Var dy) {
  switch (op.kind) {
    case Reduction::sum:
      return x.add(spread(dy, op.axes, x));
    case Reduction::max:
    case Reduction::min:
      return share_extremum(op.axes, x, y, dy);
    case Reduction::product:
      return share_product(op.axes, x, dy);
    case Reduction::and_:
    case Reduction::or_:
      break;
  }
  INTERNAL_CHECK(false);
}

// y = the sum over axes / n: dx = dy / n at every element
void rule(const Mean& op, Primal x, Primal, Var dy) {
  Shape kept = x.shape();
  Dim n = 1;
  for (const std::int64_t axis : op.axes) {
    n = n * kept[axis];
    kept[axis] = 1;
  }
  const Literal count = Literal::from_int(x.dtype(), n.size());
  const Var numerator = broadcast_in_dim(reshape(dy, kept), x.shape(), range(0, x.rank()));
  x.add(numerator / count);
}

// ---- Products and the rest ---------------------------------------------------------------------

// A product whose sides may differ in dtype: the narrower side is widened.
Var product(Var a, Var b, DotGeneral op) {
  const std::int64_t excess = byte_size(a.dtype()) - byte_size(b.dtype());
  const DType wider = excess > 0 ? a.dtype() : b.dtype();
  const DType common = excess == 0 && a.dtype() != b.dtype() ? DType::f32 : wider;
  if (a.dtype() != common) a = convert(a, common);
  if (b.dtype() != common) b = convert(b, common);
  return dot_general(a, b, std::move(op));
}

// The values ordered by their keys.
Axes sorted_by(const Axes& keys, const Axes& values) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::size_t i = 0; i < keys.size(); ++i) pairs.emplace_back(keys[i], values[i]);
  std::sort(pairs.begin(), pairs.end());
  Axes result;
  for (const auto& [key, value] : pairs) result.push_back(value);
  return result;
}

Axes joined(Axes a, const Axes& b, const Axes& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

// Any batching and contracting dims: dy contracted over the free axes of the other side, which
// leaves [batch, free of a, contracted of b] for da and [batch, contracted of a, free of b] for db
void share_product_general(const DotGeneral& op, Primal a, Primal b, Var dy) {
  const Axes a_free = other_axes(a.rank(), op.lhs_batch, op.lhs_contracting);
  const Axes b_free = other_axes(b.rank(), op.rhs_batch, op.rhs_contracting);
  const Axes batch = range(0, std::ssize(op.lhs_batch));
  const Axes dy_a = range(std::ssize(batch), std::ssize(a_free));
  const Axes dy_b = range(std::ssize(batch) + std::ssize(a_free), std::ssize(b_free));
  if (a.wanted()) {
    const Var da = product(dy, b, {batch, op.rhs_batch, dy_b, b_free, a.dtype()});
    const Axes contracted = sorted_by(op.rhs_contracting, op.lhs_contracting);
    a.add(place_axes(da, joined(op.lhs_batch, a_free, contracted)));
  }
  if (b.wanted()) {
    const Var db = product(a, dy, {op.lhs_batch, batch, a_free, dy_a, b.dtype()});
    const Axes contracted = sorted_by(op.lhs_contracting, op.rhs_contracting);
    b.add(place_axes(db, joined(op.rhs_batch, contracted, b_free)));
  }
}

// y = a b: da = dy b^T, db = a^T dy
void rule(const DotGeneral& op, Primal a, Primal b, Primal, Var dy) {
  const DotGeneral plain{{}, {}, {1}, {0}, op.dtype};
  if (!(op == plain) || a.rank() != 2 || b.rank() != 2) {
    return share_product_general(op, a, b, dy);
  }
  if (a.wanted()) a.add(product(dy, transpose(b), {{}, {}, {1}, {0}, a.dtype()}));
  if (b.wanted()) b.add(product(transpose(a), dy, {{}, {}, {1}, {0}, b.dtype()}));
}

// What its definition says.
void rule(const Custom& op, std::span<const Primal> operands, Primal y, Var dy) {
  const std::vector<Var> values(operands.begin(), operands.end());
  const auto cotangents = op.definition->derivative(op.attributes, values, y, dy);
  if (!cotangents) {
    throw Error(Category::autodiff_not_implemented,
                "the custom op \"" + op.name() + "\" declares no derivative");
  }
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw Error(Category::handler_contract_violation, "the derivative of the custom op \"" +
                                                          op.name() + "\" returned " + found +
                                                          ", expected " + expected);
  };
  if (cotangents->size() != operands.size()) {
    refuse(std::to_string(cotangents->size()) + " cotangents", std::to_string(operands.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::optional<Var>& cotangent = (*cotangents)[i];
    if (!cotangent || !operands[i].wanted()) continue;
    if (!(cotangent->type() == operands[i].type())) {
      refuse(cotangent->type().to_string() + " for operand " + std::to_string(i),
             operands[i].type().to_string());
    }
    operands[i].add(*cotangent);
  }
}

// ---- Dispatch ----------------------------------------------------------------------------------

template <class T>
constexpr int kArity = 0;
#define X(Struct, text, arity, op_class) \
  template <>                            \
  constexpr int kArity<Struct> = arity;
#include "core/op_list.def"
#undef X

}  // namespace

bool has_zero_derivative(const Op& op) {
  return std::visit([]<class T>(const T&) { return HasZeroDerivative<T>; }, op);
}

void apply_rule(Sweep& sweep, std::int64_t node, Var dy) {
  const ValueId id = ValueId::node(node);
  const Node& forward = sweep.forward().node(id);
  std::vector<Primal> x;
  for (std::int64_t i = 0; i < std::ssize(forward.operands); ++i) {
    x.push_back(Primal::operand(sweep, node, i));
  }
  const Primal y = Primal::result(sweep, node);
  const auto run = [&]<class T>(const T& op) {
    if constexpr (HasZeroDerivative<T>) {
      INTERNAL_CHECK(false);  // its operands are never wanted on its account
    } else if constexpr (kArity<T> == 1) {
      rule(op, x[0], y, dy);
    } else if constexpr (kArity<T> == 2) {
      rule(op, x[0], x[1], y, dy);
    } else if constexpr (kArity<T> == 3) {
      rule(op, x[0], x[1], x[2], y, dy);
    } else {
      rule(op, std::span<const Primal>(x), y, dy);
    }
  };
  try {
    std::visit(run, forward.op);
  } catch (const Error& error) {
    throw error.at_node(sweep.forward().describe(id));
  }
}

}  // namespace mulgrad
