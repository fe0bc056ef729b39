// Patterns: what a rule, or a test, expects a value to be made of. They nest like the expression:
//
//   std::optional<ValueId> g;
//   std::optional<Literal> d;
//   const Pattern q = op<Divide>(op<BroadcastInDim>(any(&g)).one_use(), literal(&d));
//   if (match(program, uses, value, q)) ...  // *g and *d are set
//
// A pattern is a value; captures are written only when the whole pattern has matched.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"

namespace mulgrad {

// Why a pattern did not match: the way down the operands, what stood there, what was expected.
// "operand 0: found %3 stablehlo.add, expected stablehlo.broadcast_in_dim".
struct Explanation {
  std::string text;
};

class Pattern {
 public:
  // What one attempt at a match carries along.
  struct Attempt {
    const Program& program;
    const Uses& uses;
    std::vector<std::function<void()>> captures;  // done at the end, when all has matched
    std::string why;
  };
  // One condition on an operand; sets `why` where it does not hold.
  using Condition = std::function<bool(Attempt&, const Operand&)>;

  explicit Pattern(Condition condition) : conditions_{std::move(condition)} {}

  // This pattern and a further condition on the same value. The value has exactly one use (an
  // output or capture link counts as one):
  Pattern one_use() const;
  Pattern typed(Type type) const;
  Pattern capture(std::optional<ValueId>* value) const;
  // `expected` names the condition in explanations.
  Pattern where(std::string expected, std::function<bool(const Program&, ValueId)> condition) const;

  bool test(Attempt& attempt, const Operand& operand) const;

 private:
  Pattern with(Condition condition) const;
  std::vector<Condition> conditions_;  // in the order in which they are tried
};

// Does `value` look like `pattern`? Writes the pattern's captures if so, else leaves them alone and
// says why in `explanation`.
bool match(const Program& program, const Uses& uses, ValueId value, const Pattern& pattern,
           Explanation* explanation = nullptr);

// The atoms, in a namespace of their own because their names are short.
namespace pattern {

Pattern any(std::optional<ValueId>* capture = nullptr);      // any value, no literal
Pattern value(ValueId expected);                             // this value
Pattern literal(std::optional<Literal>* capture = nullptr);  // any literal
Pattern literal(Literal expected);                           // this literal, bit for bit

// A node of the given kind, and of the given attributes if `attributes` is set.
Pattern node(OpKind kind, std::optional<Op> attributes, std::vector<Pattern> operands);

// A node of op T with exactly these operands, whatever its attributes.
template <class T, class... Operands>
Pattern op(Operands... operands) {
  return node(kind_of(Op(T{})), std::nullopt, {Pattern(std::move(operands))...});
}

// A node of exactly this op, attributes included, with exactly these operands.
template <class... Operands>
Pattern exactly(Op expected, Operands... operands) {
  const OpKind kind = kind_of(expected);
  return node(kind, std::move(expected), {Pattern(std::move(operands))...});
}

}  // namespace pattern
}  // namespace mulgrad
