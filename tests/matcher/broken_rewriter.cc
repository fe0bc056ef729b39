// Rewriters that are wrong in one way each, to show that the suite catches them:
// expand_mean_derivative as somebody might write it who forgets a clause, the divisor or the order
// of the fills. Reads a program on standard input, prints one; exits with 1 where the wrong program
// cannot be built.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <regex>
#include <string>

#include "core/rewrite/rewriter.h"
#include "core/text.h"
#include "lowering/expand_mean_derivative.h"

using namespace mulgrad;
using mean_derivative::Facts;

namespace {

struct Wrong {
  int ignored_clause = 0;
  std::string divisor = "count";
  bool swap_fills = false;
};

const Node* node_of(const Program& program, const Operand& operand) {
  if (operand.is_literal() || operand.value().is_input()) return nullptr;
  return &program.node(operand.value());
}

std::optional<Literal> scalar_of(const Program& program, const Operand& operand) {
  if (operand.is_literal()) return operand.literal();
  const Node* const node = node_of(program, operand);
  if (node == nullptr || !std::holds_alternative<Fill>(node->op)) return std::nullopt;
  return std::get<Fill>(node->op).value;
}

// Without clause 1 a literal may stand on either side, and a fill is as good as one.
void ignore_clause_1(const Program& program, const Uses& uses, const Node& q, Facts& facts) {
  for (const int side : {0, 1}) {
    const Operand& b = q.operands[static_cast<std::size_t>(side)];
    const auto d = scalar_of(program, q.operands[static_cast<std::size_t>(1 - side)]);
    if (!d || b.is_literal()) continue;
    facts.b = b.value();
    facts.d = d;
    facts.b_type = program.type(*facts.b);
    facts.b_uses = uses.count(*facts.b);
    const Node* const node = node_of(program, b);
    if (node == nullptr || !std::holds_alternative<BroadcastInDim>(node->op)) continue;
    facts.g = node->operands[0].value();
    facts.g_type = program.type(*facts.g);
    return;
  }
}

// Without clause 2 whatever made b has g as its operand; an input is its own.
void ignore_clause_2(const Program& program, Facts& facts) {
  if (!facts.b || facts.g) return;
  facts.g = facts.b;
  if (const Node* const node = node_of(program, *facts.b)) {
    for (const Operand& operand : node->operands) {
      if (!operand.is_literal()) facts.g = operand.value();
    }
  }
  facts.g_type = program.type(*facts.g);
}

// Without clause 3 the last two sizes are taken for r and c.
void ignore_clause_3(Facts& facts) {
  const Shape& shape = facts.b_type.shape;
  if (shape.rank() <= 2) return;
  const auto last = static_cast<std::size_t>(shape.rank() - 1);
  facts.b_type.shape = facts.q_type.shape = Shape{shape[last - 1], shape[last]};
}

bool fires(const Facts& facts, int ignored) {
  using namespace mean_derivative;
  if (!facts.d || !facts.g) return false;  // nothing to emit from
  for (int clause = 1; clause <= 7; ++clause) {
    if (clause == 3 && (facts.b_type.rank() != 2 || !facts.b_type.shape.is_static())) return false;
    if (clause != ignored && kClauses[clause - 1](facts)) return false;
  }
  return true;
}

Literal scale_of(const Facts& facts, const Wrong& wrong) {
  const auto r = static_cast<double>(facts.b_type.shape[0].size());
  const auto c = static_cast<double>(facts.b_type.shape[1].size());
  const double divisor = wrong.divisor == "sum"    ? r + c
                         : wrong.divisor == "rows" ? r
                                                   : facts.d->as_double();
  const DType dtype = facts.b_type.dtype;
  return is_float(dtype) ? Literal::from_double(dtype, 1 / divisor)
                         : Literal::from_int(dtype, static_cast<std::int64_t>(1 / divisor));
}

Var emit(Rewriter& rewriter, const Facts& facts, const Type& type, const Wrong& wrong) {
  Dim r = facts.b_type.shape[0];
  Dim c = facts.b_type.shape[1];
  if (wrong.swap_fills) std::swap(r, c);
  const Literal one = Literal::one(facts.b_type.dtype);
  Var g = rewriter.at(*facts.g);
  if (g.shape() != Shape{1, 1}) g = reshape(g, {1, 1});
  const Var column = matmul(fill(rewriter.builder(), one, {r, 1}), g);
  const Var spread = matmul(column, fill(rewriter.builder(), one, {1, c}));
  const Var result = spread * scale_of(facts, wrong);
  return type.rank() == 2 ? result : reshape(result, type.shape);
}

Program rewrite(const Program& program, const Wrong& wrong) {
  const Uses uses(program);
  std::vector<std::optional<Facts>> matched(program.nodes().size());
  std::vector<bool> vanishes(program.nodes().size());
  for (std::size_t i = 0; i < matched.size(); ++i) {
    const Node& q = program.nodes()[i];
    if (!std::holds_alternative<Divide>(q.op)) continue;
    Facts facts =
        mean_derivative::gather(program, uses, ValueId::node(static_cast<std::int64_t>(i)));
    if (wrong.ignored_clause == 1) ignore_clause_1(program, uses, q, facts);
    if (wrong.ignored_clause == 2) ignore_clause_2(program, facts);
    if (wrong.ignored_clause == 3) ignore_clause_3(facts);
    if (!fires(facts, wrong.ignored_clause)) continue;
    if (facts.b->is_node() && facts.b_uses == 1) {
      vanishes[static_cast<std::size_t>(facts.b->index())] = true;
    }
    matched[i] = std::move(facts);
  }
  Rewriter rewriter(program);
  for (std::size_t i = 0; i < matched.size(); ++i) {
    const auto node = static_cast<std::int64_t>(i);
    if (matched[i]) {
      rewriter.replace(node,
                       emit(rewriter, *matched[i], program.type(ValueId::node(node)), wrong).id());
    } else if (!vanishes[i]) {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

// Our reader holds clause 6 for the matcher. A rewriter without it takes q to have b's type.
std::string without_clause_6(const std::string& text) {
  static const std::regex quotient(
      R"(stablehlo\.divide %\w+, \S+ : \((tensor<[^>]*>)\) -> (tensor<[^>]*>))");
  std::smatch found;
  if (!std::regex_search(text, found, quotient)) return text;
  const std::string b = found[1];
  const std::string q = found[2];
  std::string result = text;
  for (std::size_t at = 0; (at = result.find(q, at)) != std::string::npos; at += b.size()) {
    result.replace(at, q.size(), b);
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Wrong wrong;
  CLI::App app{"expand_mean_derivative, wrong in one way."};
  app.add_option("--ignore-clause", wrong.ignored_clause)->check(CLI::Range(1, 7));
  app.add_option("--divisor", wrong.divisor)->check(CLI::IsMember({"count", "sum", "rows"}));
  app.add_flag("--swap-fills", wrong.swap_fills);
  CLI11_PARSE(app, argc, argv);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (wrong.ignored_clause == 6) text = without_clause_6(text);
  try {
    std::cout << print(rewrite(parse(text), wrong));
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
