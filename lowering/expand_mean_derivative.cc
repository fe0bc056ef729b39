#include "lowering/expand_mean_derivative.h"

#include <algorithm>
#include <charconv>

#include "core/rewrite/pattern.h"
#include "core/rewrite/rewriter.h"

namespace mulgrad {
namespace mean_derivative {
namespace {

// "16.0", "nan": shorter than the text form, which always shows an exponent.
std::string plain(const Literal& literal) {
  char buffer[64];
  const auto print = [&](auto value) {
    const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value);
    INTERNAL_CHECK(status == std::errc());
    std::string text(buffer, end);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  };
  if (literal.is_nan()) return "nan";  // whatever its sign bit
  return literal.dtype == DType::f32 ? print(literal.as<float>()) : print(literal.as_double());
}

}  // namespace

Facts gather(const Program& program, const Uses& uses, ValueId q) {
  using namespace pattern;
  Facts facts;
  facts.q_type = program.type(q);
  Explanation why;
  if (!match(program, uses, q, op<Divide>(any(&facts.b), literal(&facts.d)), &why)) {
    facts.unmatched = why.text;
    return facts;
  }
  facts.b_type = program.type(*facts.b);
  facts.b_uses = uses.count(*facts.b);
  if (!match(program, uses, *facts.b, op<BroadcastInDim>(any(&facts.g)), &why)) {
    facts.unmatched = why.text;
    return facts;
  }
  facts.g_type = program.type(*facts.g);
  return facts;
}

Verdict clause1_divided_by_finite_literal(const Facts& facts) {
  if (!facts.b || !facts.d) return facts.unmatched;
  if (!facts.d->is_finite()) return "d = " + plain(*facts.d) + ", expected a finite number";
  return std::nullopt;
}

Verdict clause2_broadcast_of_the_program(const Facts& facts) {
  if (!facts.g) return facts.unmatched;
  return std::nullopt;
}

Verdict clause3_static_float_matrix(const Facts& facts) {
  const Type& b = facts.b_type;
  const bool is_float = b.dtype == DType::f32 || b.dtype == DType::f64;
  if (is_float && b.rank() == 2 && b.shape.is_static() &&
      std::ranges::none_of(b.shape, [](const Dim& dim) { return dim.size() == 0; })) {
    return std::nullopt;
  }
  return "b has type " + b.to_string() + ", expected a static [r,c] of f32 or f64, both sizes > 0";
}

Verdict clause4_single_element_source(const Facts& facts) {
  const Type expected{facts.b_type.dtype, {1, 1}};
  if (facts.g_type == expected) return std::nullopt;
  return "g has type " + facts.g_type.to_string() + ", expected " + expected.to_string();
}

Verdict clause5_divisor_is_the_count(const Facts& facts) {
  const std::string d = "d = " + plain(*facts.d) + ", ";
  std::int64_t count = 0;
  if (__builtin_mul_overflow(facts.b_type.shape[0].size(), facts.b_type.shape[1].size(), &count)) {
    return d + "r*c of " + facts.b_type.shape.to_string() + " overflows";
  }
  if (*facts.d == Literal::from_int(facts.b_type.dtype, count)) return std::nullopt;
  return d + "r*c = " + std::to_string(count);
}

Verdict clause6_quotient_type(const Facts& facts) {
  if (facts.q_type == facts.b_type) return std::nullopt;
  return "q has type " + facts.q_type.to_string() + ", expected " + facts.b_type.to_string();
}

Verdict clause7_only_use(const Facts& facts) {
  if (facts.b_uses == 1) return std::nullopt;
  return "b has " + std::to_string(facts.b_uses) + " uses, expected one";
}

Verdict first_failure(const Facts& facts) {
  int number = 0;
  for (const auto clause : kClauses) {
    ++number;
    if (const Verdict wrong = clause(facts)) {
      return "clause " + std::to_string(number) + ": " + *wrong;
    }
  }
  return std::nullopt;
}

}  // namespace mean_derivative

namespace {

using mean_derivative::Facts;

constexpr char kName[] = "expand_mean_derivative";
const Numerics kNumerics{.sign_of_zero = true, .ulp = 1};

bool is_divide(const Program& program, ValueId node) {
  return std::holds_alternative<Divide>(program.node(node).op);
}

// 1/d rounded once: the division of the dtype itself. d is the rounded count, which may leave 63
// bits, so its reciprocal is not taken from an integer.
Literal reciprocal(const Literal& d) {
  return d.dtype == DType::f32 ? Literal::of(1 / d.as<float>()) : Literal::of(1 / d.as<double>());
}

Var emit(Rewriter& rewriter, const Facts& facts) {
  const Literal one = Literal::one(facts.b_type.dtype);
  const Var left = fill(rewriter.builder(), one, {facts.b_type.shape[0], 1});
  const Var column = matmul(left, rewriter.at(*facts.g));
  const Var right = fill(rewriter.builder(), one, {1, facts.b_type.shape[1]});
  return matmul(column, right) * reciprocal(*facts.d);
}

PassResult run(const Program& program) {
  const Uses uses(program);
  std::vector<Replacement> replacements;
  for (std::int64_t node = 0; node < std::ssize(program.nodes()); ++node) {
    const ValueId q = ValueId::node(node);
    if (!is_divide(program, q)) continue;
    Facts facts = mean_derivative::gather(program, uses, q);
    if (mean_derivative::first_failure(facts)) continue;
    const std::int64_t b = facts.b->index();
    replacements.push_back({node, {b}, kNumerics, [facts = std::move(facts)](Rewriter& rewriter) {
                              return emit(rewriter, facts);
                            }});
  }
  return apply(program, kName, replacements);
}

// A line per divide, and per broadcast that no divide reads.
std::vector<std::string> explain(const Program& program) {
  const Uses uses(program);
  std::vector<bool> divided(program.nodes().size());
  for (const Node& node : program.nodes()) {
    if (!std::holds_alternative<Divide>(node.op)) continue;
    for (const Operand& operand : node.operands) {
      if (operand.is_literal() || operand.value().is_input()) continue;
      divided[static_cast<std::size_t>(operand.value().index())] = true;
    }
  }
  std::vector<std::string> lines;
  for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
    const ValueId node = ValueId::node(i);
    if (is_divide(program, node)) {
      const auto wrong =
          mean_derivative::first_failure(mean_derivative::gather(program, uses, node));
      lines.push_back(brief_name(program, node) + ": " +
                      wrong.value_or(std::string("rewritten by ") + kName));
    } else if (std::holds_alternative<BroadcastInDim>(program.node(node).op) &&
               !divided[static_cast<std::size_t>(i)]) {
      lines.push_back(brief_name(program, node) + ": clause 1: no divide reads it");
    }
  }
  return lines;
}

}  // namespace

Pass expand_mean_derivative() {
  return {kName, {Slot::derivative}, kNumerics, run, {}, {}, explain};
}

}  // namespace mulgrad
