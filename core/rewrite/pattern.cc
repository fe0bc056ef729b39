#include "core/rewrite/pattern.h"

namespace mulgrad {
namespace {

std::string describe(const Program& program, const Operand& operand) {
  if (operand.is_literal()) return "the literal " + operand.literal().to_string();
  return program.describe(operand.value());
}

bool refuse(Pattern::Attempt& attempt, const Operand& operand, const std::string& expected) {
  attempt.why = "found " + describe(attempt.program, operand) + ", expected " + expected;
  return false;
}

}  // namespace

Pattern Pattern::with(Condition condition) const {
  Pattern result = *this;
  result.conditions_.push_back(std::move(condition));
  return result;
}

Pattern Pattern::one_use() const {
  return where("a value with one use", {}).with([](Attempt& attempt, const Operand& operand) {
    const int count = attempt.uses.count(operand.value());
    return count == 1 ||
           refuse(attempt, operand, "one use of it instead of " + std::to_string(count));
  });
}

Pattern Pattern::typed(Type type) const {
  const std::string expected = "a value of type " + type.to_string();
  return where(expected, [type = std::move(type)](const Program& program, ValueId value) {
    return program.type(value) == type;
  });
}

Pattern Pattern::capture(std::optional<ValueId>* value) const {
  return where("a value", {}).with([value](Attempt& attempt, const Operand& operand) {
    attempt.captures.emplace_back([value, found = operand.value()] { *value = found; });
    return true;
  });
}

Pattern Pattern::where(std::string expected,
                       std::function<bool(const Program&, ValueId)> condition) const {
  return with([expected = std::move(expected), condition = std::move(condition)](
                  Attempt& attempt, const Operand& operand) {
    if (!operand.is_literal() && (!condition || condition(attempt.program, operand.value()))) {
      return true;
    }
    return refuse(attempt, operand, expected);
  });
}

bool Pattern::test(Attempt& attempt, const Operand& operand) const {
  for (const Condition& condition : conditions_) {
    if (!condition(attempt, operand)) return false;
  }
  return true;
}

bool match(const Program& program, const Uses& uses, ValueId value, const Pattern& pattern,
           Explanation* explanation) {
  Pattern::Attempt attempt{program, uses, {}, {}};
  if (!pattern.test(attempt, value)) {
    if (explanation != nullptr) explanation->text = attempt.why;
    return false;
  }
  for (const auto& write : attempt.captures) write();
  return true;
}

namespace pattern {

Pattern any(std::optional<ValueId>* capture) {
  const Pattern result([](Pattern::Attempt& attempt, const Operand& operand) {
    return !operand.is_literal() || refuse(attempt, operand, "a value");
  });
  return capture == nullptr ? result : result.capture(capture);
}

Pattern value(ValueId expected) {
  return Pattern([expected](Pattern::Attempt& attempt, const Operand& operand) {
    return operand == Operand(expected) ||
           refuse(attempt, operand, attempt.program.describe(expected));
  });
}

Pattern literal(std::optional<Literal>* capture) {
  return Pattern([capture](Pattern::Attempt& attempt, const Operand& operand) {
    if (!operand.is_literal()) return refuse(attempt, operand, "a literal");
    if (capture != nullptr) {
      attempt.captures.emplace_back([capture, found = operand.literal()] { *capture = found; });
    }
    return true;
  });
}

Pattern literal(Literal expected) {
  return Pattern([expected](Pattern::Attempt& attempt, const Operand& operand) {
    return operand == Operand(expected) ||
           refuse(attempt, operand, "the literal " + expected.to_string());
  });
}

Pattern node(OpKind kind, std::optional<Op> attributes, std::vector<Pattern> operands) {
  return Pattern([kind, attributes = std::move(attributes), operands = std::move(operands)](
                     Pattern::Attempt& attempt, const Operand& operand) {
    const std::string_view expected = info(kind).text_name;
    if (operand.is_literal() || operand.value().is_input() ||
        kind_of(attempt.program.node(operand.value()).op) != kind) {
      return refuse(attempt, operand, std::string(expected));
    }
    const Node& found = attempt.program.node(operand.value());
    if (attributes && !(found.op == *attributes)) {
      return refuse(attempt, operand, std::string(expected) + " with other attributes");
    }
    if (found.operands.size() != operands.size()) {
      return refuse(attempt, operand, std::to_string(operands.size()) + " operands");
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].test(attempt, found.operands[i])) continue;
      attempt.why = "operand " + std::to_string(i) + ": " + attempt.why;
      return false;
    }
    return true;
  });
}

}  // namespace pattern
}  // namespace mulgrad
