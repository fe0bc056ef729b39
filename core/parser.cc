// The module, its function, and the types of nodes; parser_ops.cc reads what stands between an op's
// name and its type.
#include "core/parser.h"

#include <charconv>

#include "core/text_places.h"

namespace mulgrad {

Program Parser::run() {
  in_.skip_aliases();
  std::string name = "main";
  std::size_t name_offset = in_.current().offset;
  const bool wrapped = in_.accept_word("module");
  if (wrapped) {
    name_offset = in_.current().offset;
    if (in_.current().kind == TokenKind::symbol) name = content(in_.take());
    if (in_.accept_word("attributes")) attributes();
    in_.expect('{');
  }
  located(name_offset, [&] { builder_.emplace(name); });
  function();
  if (wrapped) {
    if (in_.current().is_word("func.func")) {
      in_.fail(Category::parse_error, in_.current().offset,
               "found a second function, expected '}': private functions are not supported yet");
    }
    in_.expect('}');
    in_.skip_location();
  }
  in_.skip_aliases();
  if (in_.current().kind != TokenKind::end) in_.fail_expected("the end of the text");
  return builder_->finish();
}

void Parser::attributes() {
  in_.expect('{');
  if (in_.accept('}')) return;
  do {
    if (in_.current().kind != TokenKind::word && in_.current().kind != TokenKind::string) {
      in_.fail_expected("the name of an attribute");
    }
    const std::string key = content(in_.take());
    if (!in_.accept('=')) continue;
    if (key == "mulgrad.form" && in_.current().text != "\"native\"")
      in_.fail_expected("\"native\"");
    in_.skip_attribute_value();
  } while (in_.accept(','));
  in_.expect('}');
}

void Parser::function() {
  in_.expect_word("func.func");
  if (in_.current().is_word("private") || in_.current().is_word("nested")) {
    in_.fail(Category::parse_error, in_.current().offset,
             "found a private function, expected @main alone: private functions are not supported "
             "yet");
  }
  in_.accept_word("public");
  if (in_.current().text != "@main") in_.fail_expected("'@main'");
  in_.take();
  in_.expect('(');
  if (!in_.accept(')')) {
    do {
      argument();
    } while (in_.accept(','));
    in_.expect(')');
  }
  std::vector<Result> results;
  if (in_.current().kind == TokenKind::arrow) {
    in_.take();
    if (!in_.accept('(')) {
      const LocatedType type = in_.type();  // no attributes here: a brace opens the body
      results.push_back({type, {{}, {}, type.offset}});
    } else if (!in_.accept(')')) {
      do {
        results.push_back(result());
      } while (in_.accept(','));
      in_.expect(')');
    }
  }
  if (in_.accept_word("attributes")) attributes();
  in_.expect('{');
  while (!in_.current().is_word("return") && !in_.current().is_word("func.return")) node();
  return_values(results);
  in_.expect('}');
  in_.skip_location();
}

void Parser::argument() {
  const Token name = in_.expect(TokenKind::value, "an argument such as %arg0");
  in_.expect(':');
  LocatedType type = in_.type();
  Mark mark = marks(Place::argument);
  in_.skip_location();
  InputRole role = InputRole::input;
  if (mark.key == "mulgrad.seed") role = InputRole::seed;
  if (mark.key == "mulgrad.capture") role = InputRole::capture;
  if (mark.key.empty()) {
    mark.name = "arg" + std::to_string(builder_->inputs().size());
    mark.offset = name.offset;
  }
  if (role != InputRole::input && !links_.emplace(role, mark.name).second) {
    in_.fail(Category::malformed_derivative_ir, mark.offset,
             "found a second argument with " + std::string(mark.key) + " = \"" + mark.name +
                 "\", expected one");
  }
  define(name, located(mark.offset, [&] {
           return builder_->input(std::move(mark.name), std::move(type.type), role);
         }));
}

Parser::Result Parser::result() {
  Result result;
  result.type = in_.type();
  result.mark = marks(Place::result);
  if (result.mark.key.empty()) result.mark.offset = result.type.offset;
  in_.skip_location();
  return result;
}

// An attribute dictionary of an argument or result, where there is one.
Parser::Mark Parser::marks(Place place) {
  Mark mark;
  if (!in_.accept('{') || in_.accept('}')) return mark;
  do {
    attribute(mark, place);
  } while (in_.accept(','));
  in_.expect('}');
  return mark;
}

void Parser::attribute(Mark& mark, Place place) {
  const Token key = in_.current();
  if (key.kind != TokenKind::word && key.kind != TokenKind::string) {
    in_.fail_expected("the name of an attribute");
  }
  in_.take();
  if (!key.text.starts_with("mulgrad.")) {
    if (in_.accept('=')) in_.skip_attribute_value();
    return;
  }
  if (key.text != "mulgrad.name" && key.text != "mulgrad.seed" && key.text != "mulgrad.capture") {
    in_.fail(Category::parse_error, key.offset,
             "found the attribute " + describe(key) +
                 ", expected mulgrad.name, mulgrad.seed or mulgrad.capture");
  }
  in_.expect('=');
  Mark next{key.text, {}, in_.current().offset};
  next.name = in_.string();
  if (!mark.key.empty()) {
    in_.fail(Category::malformed_derivative_ir, key.offset,
             "found " + std::string(key.text) + " beside " + std::string(mark.key) +
                 ", expected one of them");
  }
  if (next.key == "mulgrad.seed" && place == Place::result) {
    in_.fail(Category::malformed_derivative_ir, key.offset,
             "found a seed among the results, expected mulgrad.name or mulgrad.capture");
  }
  if (next.name.empty() && next.key != "mulgrad.name") {
    in_.fail(Category::malformed_derivative_ir, next.offset,
             "found " + std::string(next.key) + " = \"\", expected the name that it links to");
  }
  mark = std::move(next);
}

void Parser::return_values(const std::vector<Result>& results) {
  const std::size_t offset = in_.take().offset;
  std::vector<ValueId> returned;
  if (in_.current().kind == TokenKind::value) {
    do {
      returned.push_back(value());
    } while (in_.accept(','));
    in_.expect(':');
    for (std::size_t i = 0; i < returned.size(); ++i) {
      if (i > 0) in_.expect(',');
      check_type(in_.type(), builder_->type(returned[i]), returned[i].to_string(),
                 builder_->describe(returned[i]));
    }
  }
  in_.skip_location();
  if (returned.size() != results.size()) {
    in_.fail(Category::parse_error, offset,
             "found " + std::to_string(returned.size()) + " returned values, expected the " +
                 std::to_string(results.size()) + " that the function declares");
  }
  std::set<std::string> captures;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Mark& mark = results[i].mark;
    check_type(results[i].type, builder_->type(returned[i]), "result " + std::to_string(i),
               builder_->describe(returned[i]));
    const bool is_capture = mark.key == "mulgrad.capture";
    if (is_capture && !captures.insert(mark.name).second) {
      in_.fail(Category::malformed_derivative_ir, mark.offset,
               "found a second result with mulgrad.capture = \"" + mark.name + "\", expected one");
    }
    located(mark.offset, [&] {
      builder_->output(mark.key.empty() ? "out" + std::to_string(i) : mark.name, returned[i],
                       is_capture ? OutputRole::capture : OutputRole::output);
    });
  }
}

std::optional<std::size_t> Parser::number_of(std::string_view name) {
  std::size_t number = 0;
  const auto [end, status] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  const bool plain = status == std::errc() && end == name.data() + name.size() &&
                     (name[1] != '0' || name.size() == 2);
  return plain ? std::optional(number) : std::nullopt;
}

void Parser::define(const Token& name, ValueId value) {
  const std::optional<std::size_t> number = number_of(name.text);
  const bool is_known = number && *number < numbered_.size();
  if (is_known || values_.contains(name.text)) {
    in_.fail(Category::ambiguous_producer, name.offset,
             "found a second definition of " + std::string(name.text) + ", expected one");
  }
  if (number == numbered_.size()) {
    numbered_.push_back(value);
  } else {
    values_.emplace(name.text, value);
  }
}

ValueId Parser::look_up(const Token& name) const {
  const std::optional<std::size_t> number = number_of(name.text);
  if (number && *number < numbered_.size()) return numbered_[*number];
  const auto found = values_.find(name.text);
  if (found == values_.end()) {
    in_.fail(Category::missing_dependency, name.offset,
             "found " + std::string(name.text) + ", expected a value defined above");
  }
  return found->second;
}

ValueId Parser::value() {
  if (in_.current().kind == TokenKind::number) {
    in_.fail(Category::invalid_literal, in_.current().offset,
             "found the literal " + describe(in_.current()) +
                 ", expected a value such as %0: only elementwise ops take literals");
  }
  return look_up(in_.expect(TokenKind::value, "a value such as %0"));
}

// "(A, B) -> R" with a type per value.
Parser::Annotation Parser::functional_type(std::size_t values) {
  Annotation annotation;
  const std::size_t offset = in_.current().offset;
  in_.expect('(');
  if (!in_.accept(')')) {
    do {
      annotation.operands.push_back(in_.type());
    } while (in_.accept(','));
    in_.expect(')');
  }
  if (annotation.operands.size() != values) {
    in_.fail(Category::parse_error, offset,
             "found " + std::to_string(annotation.operands.size()) +
                 " operand types, expected one for each of the " + std::to_string(values) +
                 " values");
  }
  in_.expect(TokenKind::arrow, "'->'");
  annotation.result = in_.type();
  return annotation;
}

// The same, or "T", or what StableHLO writes: "P, T" for select, "T -> T" for erf.
Parser::Annotation Parser::elementwise_type(const Op& op, std::size_t values) {
  if (in_.current().is('(')) return functional_type(values);
  Annotation annotation;
  annotation.result = in_.type();
  if (std::holds_alternative<Select>(op) && in_.accept(',')) {
    annotation.operands.push_back(std::exchange(annotation.result, in_.type()));
    while (annotation.operands.size() < values) annotation.operands.push_back(annotation.result);
  } else if (values == 1 && in_.current().kind == TokenKind::arrow) {
    in_.take();
    annotation.operands.push_back(std::exchange(annotation.result, in_.type()));
  } else {
    annotation.uniform = true;
  }
  return annotation;
}

void Parser::check_type(const LocatedType& written, const Type& actual, const std::string& what,
                        const std::string& node, Category shapes) const {
  if (written.type == actual) return;
  in_.fail(
      written.type.dtype == actual.dtype ? shapes : Category::dtype_mismatch, written.offset,
      "found " + written.type.to_string() + " for " + what + ", expected " + actual.to_string(),
      node);
}

ValueId Parser::append(std::size_t offset, Op op, std::span<const Operand> operands) {
  offsets_.push_back(offset);
  return located(offset, [&] { return builder_->add(std::move(op), operands); });
}

ValueId Parser::build(std::size_t offset, Op op, std::span<const Operand> operands,
                      const Annotation& annotation) {
  const bool is_mean = std::holds_alternative<Mean>(op);
  const bool is_clamp = std::holds_alternative<Clamp>(op);
  const ValueId id = append(offset, std::move(op), operands);
  std::size_t next = 0;
  for (const Operand& operand : operands) {
    if (operand.is_literal()) continue;
    const LocatedType& written =
        annotation.uniform ? annotation.result : annotation.operands[next++];
    const Type& actual = builder_->type(operand.value());
    if (written.type == actual) continue;
    // StableHLO writes one type for a clamp, also where its bounds are scalars.
    if (annotation.uniform && is_clamp && actual == Type{written.type.dtype, {}}) continue;
    check_type(written, actual, operand.value().to_string(), builder_->describe(id));
  }
  // The shape of a mean's result follows from its axes and keepdims alone: blame these.
  const Type& inferred = builder_->type(id);
  if (!(annotation.result.type == inferred)) {
    check_type(annotation.result, inferred, "the result", builder_->describe(id),
               is_mean ? Category::reduction_shape_mismatch : Category::shape_mismatch);
  }
  return id;
}

Program parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).run();
}

PlacedProgram parse_with_places(std::string_view text, const ParseOptions& options) {
  Parser parser(text, options);
  Program program = parser.run();
  return {std::move(program), parser.offsets()};
}

std::string place_in(std::string_view text, std::size_t offset) {
  return Lexer(text).position(offset);
}

}  // namespace mulgrad
