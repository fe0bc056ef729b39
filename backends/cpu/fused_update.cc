#include "backends/cpu/fused_update.h"

#include <algorithm>
#include <array>

// Highway compiles this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fused_update.cc"
#include <hwy/foreach_target.h>
// Behind foreach_target.
#include "backends/cpu/fused_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mulgrad::cpu::HWY_NAMESPACE {
namespace {

// Calls step(load, store) for every vector; both work on the array behind a place.
template <class T, class F>
HWY_INLINE void for_each_vector(std::byte* const* places, std::int64_t n, F step) {
  const Lanes<T> d;
  const std::int64_t lanes = lanes_of(d);
  const auto array = [&](int place) HWY_ATTR { return reinterpret_cast<T*>(places[place]); };
  const auto part = [&](std::int64_t i, std::int64_t count) HWY_ATTR {
    step([&](int place) HWY_ATTR { return load_part(d, array(place) + i, count); },
         [&](int place, auto v) HWY_ATTR { store_part(d, v, array(place) + i, count); });
  };
  // Vectors that lie across cache lines cost half as much again, and arrays of the caller's mostly
  // lie alike: the first elements go up to where a vector of the first result lies well.
  std::int64_t i = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(places[0]) / sizeof(T);
  const auto head = static_cast<std::int64_t>(-address % static_cast<std::uintptr_t>(lanes));
  if (head != 0 && n >= 16 * lanes) {
    part(0, head);
    i = head;
  }
  for (; i + lanes <= n; i += lanes) {
    step([&](int place) HWY_ATTR { return hn::LoadU(d, array(place) + i); },
         [&](int place, auto v) HWY_ATTR { hn::StoreU(v, d, array(place) + i); });
  }
  if (i < n) part(i, n - i);
}

template <class T>
HWY_INLINE hn::Vec<Lanes<T>> scalar(const std::byte* place) {
  return hn::Set(Lanes<T>(), *reinterpret_cast<const T*>(place));
}

template <class T>
void adamw(std::byte* const* places, std::int64_t n) {
  const auto kept_p = scalar<T>(places[7]), clip = scalar<T>(places[8]);
  const auto kept_m = scalar<T>(places[9]), new_m = scalar<T>(places[10]);
  const auto kept_v = scalar<T>(places[11]), new_v = scalar<T>(places[12]);
  const auto correction1 = scalar<T>(places[13]), correction2 = scalar<T>(places[14]);
  const auto rate = scalar<T>(places[15]), epsilon = scalar<T>(places[16]);
  for_each_vector<T>(places, n, [&](auto load, auto store) HWY_ATTR {
    const auto g = hn::Mul(load(4), clip);
    const auto m = hn::Add(hn::Mul(load(5), kept_m), hn::Mul(g, new_m));
    const auto v = hn::Add(hn::Mul(load(6), kept_v), hn::Mul(hn::Mul(g, g), new_v));
    const auto direction = hn::Div(m, correction1);
    const auto scale = hn::Add(hn::Sqrt(hn::Div(v, correction2)), epsilon);
    const auto step = hn::Div(hn::Mul(rate, direction), scale);
    store(0, hn::Sub(hn::Mul(load(3), kept_p), step));
    store(1, m);
    store(2, v);
  });
}

template <class T>
void momentum(std::byte* const* places, std::int64_t n) {
  const auto clip = scalar<T>(places[5]), kept_m = scalar<T>(places[6]);
  const auto rate = scalar<T>(places[7]);
  for_each_vector<T>(places, n, [&](auto load, auto store) HWY_ATTR {
    const auto m = hn::Add(hn::Mul(load(4), kept_m), hn::Mul(load(3), clip));
    store(0, hn::Sub(load(2), hn::Mul(rate, m)));
    store(1, m);
  });
}

UpdateFunction find_adamw(DType dtype) {
  return dtype == DType::f32 ? adamw<float> : adamw<double>;
}
UpdateFunction find_momentum(DType dtype) {
  return dtype == DType::f32 ? momentum<float> : momentum<double>;
}

}  // namespace
}  // namespace mulgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mulgrad::cpu {
namespace {

HWY_EXPORT(find_adamw);
HWY_EXPORT(find_momentum);

using Argument = FusedArgument;

bool same(const Argument& a, const Argument& b) {
  if (a.index() != b.index()) return false;
  if (const auto* input = std::get_if<FromInput>(&a)) {
    return input->index == std::get<FromInput>(b).index;
  }
  if (const auto* step = std::get_if<FromStep>(&a)) {
    return step->index == std::get<FromStep>(b).index;
  }
  return std::get<Literal>(a) == std::get<Literal>(b);
}

// What an argument is, as a pattern: each function gives the parts, or nothing.
class Parts {
 public:
  explicit Parts(const FusedLoop& loop) : loop_(loop) {}

  bool is_scalar(const Argument& a) const { return extent_of(loop_, a) == Extent::scalar; }
  bool is_input(const Argument& a) const {
    return std::holds_alternative<FromInput>(a) && !is_scalar(a);
  }

  // The operands of a full step.
  const FusedArguments* operands(OpKind kind, const Argument& a) const {
    const auto* from = std::get_if<FromStep>(&a);
    if (from == nullptr || is_scalar(a)) return nullptr;
    const FusedStep& step = loop_.steps[static_cast<std::size_t>(from->index)];
    return kind_of(step.op) == kind ? &step.arguments : nullptr;
  }

  struct WithScalar {
    Argument full;
    Argument scalar;
  };
  // An op of a full value and a scalar, in this order unless they commute.
  std::optional<WithScalar> with_scalar(OpKind kind, const Argument& a) const {
    const auto* x = operands(kind, a);
    if (x == nullptr) return std::nullopt;
    const auto& [first, second] = std::tie((*x)[0], (*x)[1]);
    if (!is_scalar(first) && is_scalar(second)) return WithScalar{first, second};
    if (kind != OpKind::Divide && is_scalar(first) && !is_scalar(second)) {
      return WithScalar{second, first};
    }
    return std::nullopt;
  }
  // An input, perhaps times a scalar: a number of one changes no bit of it.
  std::optional<WithScalar> scaled_input(const Argument& a) const {
    if (is_input(a)) return WithScalar{a, Literal::one(dtype())};
    const auto x = with_scalar(OpKind::Multiply, a);
    return x && is_input(x->full) ? x : std::nullopt;
  }

  DType dtype() const { return loop_.inputs.empty() ? DType::i1 : loop_.inputs[0].dtype; }

  // All steps and inputs are of one float dtype, and the results those named, in some order; the
  // full steps being as many, they are all known.
  bool is_all(std::vector<std::int32_t> results, std::ptrdiff_t full_steps) const {
    std::vector<std::int32_t> found = loop_.results;
    std::ranges::sort(found);
    std::ranges::sort(results);
    const auto of_dtype = [&](const auto& x) { return x.dtype == dtype(); };
    return found == results && (dtype() == DType::f32 || dtype() == DType::f64) &&
           std::ranges::all_of(loop_.inputs, of_dtype) &&
           std::ranges::all_of(loop_.steps, of_dtype) &&
           std::ranges::count(loop_.steps, Extent::full, &FusedStep::extent) == full_steps;
  }

 private:
  const FusedLoop& loop_;
};

std::int32_t step_index(const Argument& a) { return std::get<FromStep>(a).index; }
std::ptrdiff_t steps_of(const Argument& scaled) { return std::holds_alternative<FromStep>(scaled); }

// p' = P - (rate (m' / c1)) / (sqrt(v' / c2) + epsilon), P = p or p k,
// m' = m b + g (1 - b), v' = v b + (g g) (1 - b), g an input or one times a scalar.
std::optional<Update> adamw_of(const FusedLoop& loop, std::int32_t result) {
  const Parts parts(loop);
  const auto* difference = parts.operands(OpKind::Subtract, FromStep{result});
  if (difference == nullptr) return std::nullopt;
  const auto parameter = parts.scaled_input((*difference)[0]);
  const auto* step = parts.operands(OpKind::Divide, (*difference)[1]);
  if (!parameter || step == nullptr) return std::nullopt;
  const auto rated = parts.with_scalar(OpKind::Multiply, (*step)[0]);
  const auto shifted = parts.with_scalar(OpKind::Add, (*step)[1]);
  if (!rated || !shifted) return std::nullopt;
  const auto* root = parts.operands(OpKind::Sqrt, shifted->full);
  const auto first = parts.with_scalar(OpKind::Divide, rated->full);
  if (root == nullptr || !first) return std::nullopt;
  const auto second = parts.with_scalar(OpKind::Divide, (*root)[0]);
  if (!second) return std::nullopt;
  const auto* m_terms = parts.operands(OpKind::Add, first->full);
  const auto* v_terms = parts.operands(OpKind::Add, second->full);
  if (m_terms == nullptr || v_terms == nullptr) return std::nullopt;
  for (const std::size_t which : {0, 1}) {  // the term of g; sums commute
    const auto v = parts.with_scalar(OpKind::Multiply, (*v_terms)[1 - which]);
    const auto v_new = parts.with_scalar(OpKind::Multiply, (*v_terms)[which]);
    if (!v || !v_new || !parts.is_input(v->full)) continue;
    const auto* square = parts.operands(OpKind::Multiply, v_new->full);
    if (square == nullptr || !same((*square)[0], (*square)[1])) continue;
    const Argument g = (*square)[0];
    const auto gradient = parts.scaled_input(g);
    if (!gradient) continue;
    for (const std::size_t of_g : {0, 1}) {
      const auto m = parts.with_scalar(OpKind::Multiply, (*m_terms)[1 - of_g]);
      const auto m_new = parts.with_scalar(OpKind::Multiply, (*m_terms)[of_g]);
      if (!m || !m_new || !parts.is_input(m->full) || !same(m_new->full, g)) continue;
      const std::vector<std::int32_t> results{result, step_index(first->full),
                                              step_index(second->full)};
      if (!parts.is_all(results, 14 + steps_of(g) + steps_of((*difference)[0]))) continue;
      return Update{HWY_DYNAMIC_DISPATCH(find_adamw)(parts.dtype()),
                    results,
                    {parameter->full, gradient->full, m->full, v->full, parameter->scalar,
                     gradient->scalar, m->scalar, m_new->scalar, v->scalar, v_new->scalar,
                     first->scalar, second->scalar, rated->scalar, shifted->scalar}};
    }
  }
  return std::nullopt;
}

// p' = p - rate m', m' = m b + g, g an input or one times a scalar.
std::optional<Update> momentum_of(const FusedLoop& loop, std::int32_t result) {
  const Parts parts(loop);
  const auto* difference = parts.operands(OpKind::Subtract, FromStep{result});
  if (difference == nullptr || !parts.is_input((*difference)[0])) return std::nullopt;
  const auto step = parts.with_scalar(OpKind::Multiply, (*difference)[1]);
  if (!step) return std::nullopt;
  const auto* terms = parts.operands(OpKind::Add, step->full);
  if (terms == nullptr) return std::nullopt;
  for (const std::size_t of_g : {1, 0}) {
    const auto m = parts.with_scalar(OpKind::Multiply, (*terms)[1 - of_g]);
    const auto gradient = parts.scaled_input((*terms)[of_g]);
    if (!m || !parts.is_input(m->full) || !gradient) continue;
    const std::vector<std::int32_t> results{result, step_index(step->full)};
    if (!parts.is_all(results, 4 + steps_of((*terms)[of_g]))) continue;
    return Update{
        HWY_DYNAMIC_DISPATCH(find_momentum)(parts.dtype()),
        results,
        {(*difference)[0], gradient->full, m->full, gradient->scalar, m->scalar, step->scalar}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Update> update_of(const FusedLoop& loop) {
  for (const std::int32_t result : loop.results) {
    if (auto update = adamw_of(loop, result)) return update;
    if (auto update = momentum_of(loop, result)) return update;
  }
  return std::nullopt;
}

}  // namespace mulgrad::cpu
#endif
