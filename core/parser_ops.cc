#include "core/parser.h"

namespace mulgrad {

const std::unordered_map<std::string_view, Parser::Routine>& Parser::routines() {
  // Fill and Constant share a name: the first entry stays, and reads both.
  static const std::unordered_map<std::string_view, Routine> table = {
#define X(Struct, text, arity, op_class) {text, &Parser::read_op<Struct, OpClass::op_class>},
#include "core/op_list.def"
#undef X
  };
  return table;
}

void Parser::node() {
  const Token name = in_.expect(TokenKind::value, "a node (%0 = ...) or return");
  if (in_.current().is(':')) in_.fail_expected("'=': every op has one result");
  in_.expect('=');
  if (in_.current().kind == TokenKind::string) {
    in_.fail_expected("an op in its pretty form");
  }
  const Token op = in_.expect(TokenKind::word, "an op such as stablehlo.add");
  const auto routine = routines().find(op.text);
  if (routine == routines().end()) {
    in_.fail(Category::parse_error, op.offset,
             "found the op " + describe(op) + ", expected one of the op list");
  }
  define(name, (this->*routine->second)(op.offset));
  in_.skip_location();
}

// %x, 1.0e+00, ... : type. The literals' dtype is that of the first value operand.
ValueId Parser::elementwise(std::size_t offset, Op op) {
  auto* compare = std::get_if<Compare>(&op);
  if (compare != nullptr) {
    compare->direction = direction();
    in_.expect(',');
  }
  std::vector<Token> tokens;
  std::optional<Token> comparison_type;
  do {
    const Token& token = in_.current();
    const bool is_literal =
        token.kind == TokenKind::number || token.is_word("true") || token.is_word("false");
    if (compare != nullptr && !tokens.empty() && token.kind == TokenKind::word && !is_literal) {
      comparison_type = in_.take();
      break;
    }
    if (token.kind != TokenKind::value && !is_literal) {
      in_.fail_expected("a value such as %0, or a number");
    }
    tokens.push_back(in_.take());
  } while (in_.accept(','));

  // What is a value is known before the types are read; what is none waits for its dtype.
  std::vector<Operand> operands;
  std::optional<DType> dtype;
  std::size_t values = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::value) {
      operands.emplace_back(Literal{});
      continue;
    }
    operands.emplace_back(look_up(tokens[i]));
    ++values;
    const bool is_predicate = i == 0 && std::holds_alternative<Select>(op);
    if (!dtype && !is_predicate) dtype = builder_->type(operands[i].value()).dtype;
  }
  if (comparison_type) check_comparison_type(*comparison_type, dtype);
  in_.expect(':');
  const Annotation annotation = elementwise_type(op, values);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!operands[i].is_literal()) continue;
    const bool is_predicate = i == 0 && std::holds_alternative<Select>(op);
    const DType position = is_predicate ? DType::i1 : dtype.value_or(annotation.result.type.dtype);
    if (position == DType::i1) {
      in_.fail(Category::invalid_literal, tokens[i].offset,
               "found " + describe(tokens[i]) + ", expected a value: i1 literals do not exist");
    }
    operands[i] = in_.number(tokens[i], position);
  }
  if (auto* convert = std::get_if<Convert>(&op)) convert->dtype = annotation.result.type.dtype;
  return build(offset, std::move(op), operands, annotation);
}

Comparison Parser::direction() {
  for (const Comparison direction : {Comparison::EQ, Comparison::NE, Comparison::LT, Comparison::LE,
                                     Comparison::GT, Comparison::GE}) {
    if (in_.accept_word(to_string(direction))) return direction;
  }
  in_.fail_expected("EQ, NE, LT, LE, GT or GE");
}

// FLOAT, SIGNED or UNSIGNED: it says again what the dtype says.
void Parser::check_comparison_type(const Token& token, std::optional<DType> dtype) const {
  if (token.text != "FLOAT" && token.text != "SIGNED" && token.text != "UNSIGNED") {
    in_.fail(Category::parse_error, token.offset,
             "found " + describe(token) + ", expected FLOAT, SIGNED or UNSIGNED");
  }
  if (dtype && token.text != comparison_type(*dtype)) {
    in_.fail(Category::dtype_mismatch, token.offset,
             "found " + describe(token) + " for operands of dtype " +
                 std::string(to_string(*dtype)) + ", expected " +
                 std::string(comparison_type(*dtype)));
  }
}

ValueId Parser::read(std::size_t offset, const Fill&) {
  return append(offset, located(offset, [&] { return in_.dense(); }), {});
}

ValueId Parser::read(std::size_t offset, Iota op) {
  in_.expect_word("dim");
  in_.expect('=');
  op.dimension = in_.integer();
  in_.expect(':');
  const LocatedType type = in_.type();
  op.dtype = type.type.dtype;
  op.shape = type.type.shape;
  return append(offset, std::move(op), {});
}

ValueId Parser::read(std::size_t offset, BroadcastInDim op) {
  const Operand x = value();
  in_.expect(',');
  op.dims = in_.named_integers("dims");
  in_.expect(':');
  const Annotation annotation = functional_type(1);
  op.shape = annotation.result.type.shape;
  return build(offset, std::move(op), {&x, 1}, annotation);
}

ValueId Parser::read(std::size_t offset, Reshape op) {
  const Operand x = value();
  in_.expect(':');
  const Annotation annotation = functional_type(1);
  op.shape = annotation.result.type.shape;
  return build(offset, std::move(op), {&x, 1}, annotation);
}

ValueId Parser::read(std::size_t offset, Transpose op) {
  const Operand x = value();
  in_.expect(',');
  op.permutation = in_.named_integers("dims");
  return finish(offset, std::move(op), {x});
}

ValueId Parser::read(std::size_t offset, Slice op) {
  const Operand x = value();
  in_.expect('[');
  if (!in_.accept(']')) {
    do {
      op.start.push_back(in_.integer());
      in_.expect(':');
      op.limit.push_back(in_.dim());
      op.stride.push_back(in_.accept(':') ? in_.integer() : 1);
    } while (in_.accept(','));
    in_.expect(']');
  }
  return finish(offset, std::move(op), {x});
}

ValueId Parser::read(std::size_t offset, Concatenate op) {
  std::vector<Operand> operands;
  do {
    operands.emplace_back(value());
    in_.expect(',');
  } while (!in_.current().is_word("dim"));
  in_.take();
  in_.expect('=');
  op.dimension = in_.integer();
  return finish(offset, std::move(op), operands);
}

ValueId Parser::read(std::size_t offset, Pad op) {
  const Operand x = value();
  in_.expect(',');
  const Operand padding = value();
  in_.expect(',');
  op.low = in_.named_integers("low");
  in_.expect(',');
  op.high = in_.named_integers("high");
  in_.expect(',');
  op.interior = in_.named_integers("interior");
  return finish(offset, std::move(op), {x, padding});
}

ValueId Parser::read(std::size_t offset, Reduce op) {
  in_.expect('(');
  const Operand x = value();
  if (in_.current().is_word("init")) {
    in_.fail_expected("')': a reduction starts from its identity");
  }
  in_.expect(')');
  in_.expect_word("applies");
  op.kind = reduction();
  in_.expect_word("across");
  op.axes = in_.named_integers("dimensions");
  return finish(offset, std::move(op), {x});
}

Reduction Parser::reduction() {
  for (const Reduction kind : {Reduction::sum, Reduction::max, Reduction::min, Reduction::product,
                               Reduction::and_, Reduction::or_}) {
    if (in_.accept_word(to_string(kind))) return kind;
  }
  in_.fail_expected("stablehlo.add, maximum, minimum, multiply, and, or");
}

ValueId Parser::read(std::size_t offset, Mean op) {
  const Operand x = value();
  in_.expect_word("across");
  op.axes = in_.named_integers("dimensions");
  if (in_.accept('{')) {
    in_.expect_word("keepdims");
    in_.expect('=');
    op.keepdims = in_.current().is_word("true");
    if (!op.keepdims && !in_.current().is_word("false")) in_.fail_expected("true or false");
    in_.take();
    in_.expect('}');
  }
  return finish(offset, std::move(op), {x});
}

ValueId Parser::read(std::size_t offset, DotGeneral op) {
  const Operand lhs = value();
  in_.expect(',');
  const Operand rhs = value();
  in_.expect(',');
  if (in_.current().is_word("batching_dims")) {
    op.lhs_batch = in_.named_integers("batching_dims");
    in_.expect_word("x");
    op.rhs_batch = in_.integers();
    in_.expect(',');
  }
  op.lhs_contracting = in_.named_integers("contracting_dims");
  in_.expect_word("x");
  op.rhs_contracting = in_.integers();
  if (in_.accept(',')) {
    in_.expect_word("precision");
    in_.expect('=');
    if (!in_.current().is('[')) in_.fail_expected("'['");
    in_.skip_balanced();
  }
  in_.expect(':');
  const Annotation annotation = functional_type(2);
  op.dtype = annotation.result.type.dtype;
  const Operand operands[] = {lhs, rhs};
  return build(offset, std::move(op), operands, annotation);
}

ValueId Parser::read(std::size_t offset, Custom op) {
  const Token name = in_.expect(TokenKind::symbol, "the name of a custom op, as in @name");
  const auto definition = customs_.find(content(name));
  if (definition == customs_.end()) {
    in_.fail(Category::parse_error, name.offset,
             "found the custom op " + describe(name) + ", expected one of the " +
                 std::to_string(customs_.size()) + " that the parser was given");
  }
  op.definition = definition->second;
  in_.expect('(');
  std::vector<Operand> operands;
  if (!in_.accept(')')) {
    do {
      operands.emplace_back(value());
    } while (in_.accept(','));
    in_.expect(')');
  }
  if (in_.accept('{')) {
    in_.expect_word("attributes");
    in_.expect('=');
    op.attributes = in_.string();
    in_.expect('}');
  }
  return finish(offset, std::move(op), operands);
}

}  // namespace mulgrad
