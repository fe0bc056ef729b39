#include "core/text_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

namespace mulgrad {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_symbol_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

// nullopt where the text is no integer, or leaves 64 bits.
std::optional<std::int64_t> integer_from(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : '>'; }
bool opens(const Token& token) {
  return token.is('(') || token.is('[') || token.is('{') || token.is('<');
}
bool closes(const Token& token) {
  return token.is(')') || token.is(']') || token.is('}') || token.is('>');
}

}  // namespace

// The scalars of a dense<...> and the sizes of the list that they stand in.
struct TextReader::Elements {
  std::vector<Token> scalars;
  std::vector<std::int64_t> sizes;  // of rank 0 where there is no list
  bool empty = false;               // dense<>
};

Token TextReader::take() {
  const Token token = current();
  lexer_.advance();
  return token;
}

void TextReader::fail(Category category, std::size_t offset, const std::string& message,
                      const std::string& node) const {
  throw Error(category, message, node, location(offset));
}

void TextReader::fail_expected(std::string_view expected) const {
  fail(Category::parse_error, current().offset,
       "found " + describe(current()) + ", expected " + std::string(expected));
}

void TextReader::fail_at(std::size_t offset, std::string_view expected) const {
  const std::string_view text = lexer_.text();
  Token found{TokenKind::end, {}, offset};
  if (offset < text.size()) found = {TokenKind::punctuation, text.substr(offset, 1), offset};
  fail(Category::parse_error, offset,
       "found " + describe(found) + ", expected " + std::string(expected));
}

bool TextReader::accept(char punctuation) {
  if (!current().is(punctuation)) return false;
  lexer_.advance();
  return true;
}

bool TextReader::accept_word(std::string_view word) {
  if (!current().is_word(word)) return false;
  lexer_.advance();
  return true;
}

void TextReader::expect(char punctuation) {
  if (!accept(punctuation)) fail_expected(std::string("'") + punctuation + "'");
}

void TextReader::expect_word(std::string_view word) {
  if (!accept_word(word)) fail_expected("'" + std::string(word) + "'");
}

Token TextReader::expect(TokenKind kind, std::string_view expected) {
  if (current().kind != kind) fail_expected(expected);
  return take();
}

std::size_t TextReader::skip_space(std::size_t offset) const {
  const std::size_t next = lexer_.text().find_first_not_of(" \t\r\n", offset);
  return next == std::string_view::npos ? lexer_.text().size() : next;
}

// Sizes are read from the characters: as tokens, 3x0xf32 would be one odd number.
Dim TextReader::scan_dim(std::size_t& offset) const {
  const std::string_view text = lexer_.text();
  const auto digits = [&] {
    const std::size_t begin = offset;
    while (offset < text.size() && is_digit(text[offset])) ++offset;
    const auto size = integer_from(text.substr(begin, offset - begin));
    if (!size) fail(Category::parse_error, begin, "found a size that leaves 63 bits");
    return *size;
  };
  const auto at = [&](char c) { return offset < text.size() && text[offset] == c; };
  const auto at_digit = [&] { return offset < text.size() && is_digit(text[offset]); };
  if (at_digit()) return Dim(digits());
  if (!at('[')) fail_at(offset, "a size");
  offset = skip_space(offset + 1);
  Dim result(1);
  bool more = true;
  if (at_digit()) {
    const std::size_t coefficient = offset;
    result = Dim(digits());
    if (result == Dim(0)) fail_at(coefficient, "a coefficient > 0");
    offset = skip_space(offset);
    if (!at('*')) fail_at(offset, "'*' and a symbol");
    offset = skip_space(offset + 1);
  }
  while (more) {
    const std::size_t name = offset;
    if (at_digit()) fail_at(offset, "a symbol");
    while (offset < text.size() && is_symbol_char(text[offset])) ++offset;
    if (offset == name) fail_at(offset, "a symbol");
    result = result * Dim::symbol(std::string(text.substr(name, offset - name)));
    offset = skip_space(offset);
    more = at('*');
    if (more) offset = skip_space(offset + 1);
  }
  if (!at(']')) fail_at(offset, "'*' or ']'");
  ++offset;
  return result;
}

Dim TextReader::dim() {
  std::size_t offset = current().offset;
  Dim result = scan_dim(offset);
  lexer_.seek(offset);
  return result;
}

LocatedType TextReader::type() {
  LocatedType result{{}, current().offset};
  const auto missing = [&](Category category, const std::string& found, std::string_view expected) {
    fail(category, result.offset, "found " + found + ", expected " + std::string(expected));
  };
  if (current().kind != TokenKind::word) fail_expected("a tensor type");
  if (dtype_from_string(current().text)) {
    missing(Category::missing_shape_metadata, describe(current()),
            "a tensor type, as in tensor<3x5xf32>");
  }
  expect_word("tensor");
  if (!current().is('<')) {
    missing(Category::missing_shape_metadata, "a tensor type without sizes and dtype",
            "tensor<3x5xf32>");
  }
  const std::string_view text = lexer_.text();
  std::size_t offset = skip_space(current().offset + 1);
  while (true) {
    const char c = offset < text.size() ? text[offset] : '\0';
    if (c == '*' || c == '?') {
      missing(Category::missing_shape_metadata, std::string("the size '") + c + "'",
              "a number or a symbol such as [B]");
    } else if (c == '>') {
      missing(Category::missing_dtype_metadata, "a tensor type without a dtype", "tensor<3x5xf32>");
    } else if (is_digit(c) || c == '[') {
      result.type.shape.push_back(scan_dim(offset));
      offset = skip_space(offset);
      if (offset < text.size() && text[offset] == 'x') {
        offset = skip_space(offset + 1);
      } else if (offset >= text.size() || text[offset] != '>') {
        fail_at(offset, "'x'");
      }
    } else {
      const std::size_t begin = offset;
      while (offset < text.size() && is_symbol_char(text[offset])) ++offset;
      const std::string_view name = text.substr(begin, offset - begin);
      if (name.empty()) fail_at(begin, "a size or a dtype");
      const auto dtype = dtype_from_string(name);
      if (!dtype) {
        fail(Category::parse_error, begin,
             "found the dtype " + describe({TokenKind::word, name, begin}) +
                 ", expected one of i1, i8 to i64, ui8 to ui64, bf16, f16, f32, f64");
      }
      result.type.dtype = *dtype;
      break;
    }
  }
  lexer_.seek(offset);
  expect('>');
  return result;
}

std::int64_t TextReader::integer() {
  const auto value =
      current().kind == TokenKind::number ? integer_from(current().text) : std::nullopt;
  if (!value) fail_expected("an integer");
  lexer_.advance();
  return *value;
}

std::vector<std::int64_t> TextReader::integers() {
  std::vector<std::int64_t> result;
  expect('[');
  if (accept(']')) return result;
  do {
    result.push_back(integer());
  } while (accept(','));
  if (!accept(']')) fail_expected("',' or ']'");
  return result;
}

std::vector<std::int64_t> TextReader::named_integers(std::string_view name) {
  expect_word(name);
  expect('=');
  return integers();
}

std::string TextReader::string() { return content(expect(TokenKind::string, "a string")); }

Literal TextReader::number(const Token& token, DType dtype) const {
  const bool spells_one =
      token.kind == TokenKind::number || token.is_word("true") || token.is_word("false");
  if (const auto literal = spells_one ? Literal::parse(dtype, token.text) : std::nullopt) {
    return *literal;
  }
  std::string expected;
  if (dtype == DType::i1) {
    expected = "true or false";
  } else if (is_float(dtype)) {
    expected = "a number in the range of " + std::string(to_string(dtype)) + ", or 0x and " +
               std::to_string(2 * byte_size(dtype)) + " digits of its bit pattern";
  } else {
    expected = "a decimal integer in the range of " + std::string(to_string(dtype));
  }
  fail(Category::parse_error, token.offset, "found " + describe(token) + ", expected " + expected);
}

TextReader::Elements TextReader::elements() {
  Elements result;
  if (current().is('>')) {
    result.empty = true;
    return result;
  }
  // Brackets are counted, not recursed into: `counts` holds the entries so far of each open list.
  std::vector<std::int64_t> counts;
  bool first = true;  // until the first list closes, sizes are being found out
  bool done = false;
  while (!done) {
    if (current().is('[')) {
      if (!first && counts.size() == result.sizes.size()) fail_expected("a number");
      lexer_.advance();
      counts.push_back(0);
      if (first) result.sizes.push_back(-1);
      if (!current().is(']')) continue;
    } else {
      if (counts.size() != result.sizes.size()) fail_expected("'['");
      if (current().kind != TokenKind::number && !current().is_word("true") &&
          !current().is_word("false")) {
        fail_expected("a number");
      }
      result.scalars.push_back(take());
      if (!counts.empty()) ++counts.back();
      first = false;
    }
    // Behind a value, or an empty list's opening bracket: close what closes here.
    while (!counts.empty() && current().is(']')) {
      std::int64_t& size = result.sizes[counts.size() - 1];
      if (size >= 0 && size != counts.back()) {
        fail(Category::parse_error, current().offset,
             "found a list of " + std::to_string(counts.back()) + " entries beside one of " +
                 std::to_string(size) + ", expected equal lengths");
      }
      size = counts.back();
      first = false;
      lexer_.advance();
      counts.pop_back();
      if (!counts.empty()) ++counts.back();
    }
    done = counts.empty();
    if (!done && !accept(',')) fail_expected("',' or ']'");
  }
  return result;
}

Tensor TextReader::blob(const Token& token, const Type& type) const {
  const std::string_view digits = token.text.substr(1, token.text.size() - 2);
  const auto malformed = [&](const std::string& found, const std::string& expected) {
    fail(Category::parse_error, token.offset, "found " + found + ", expected " + expected);
  };
  if (!digits.starts_with("0x") && !digits.starts_with("0X")) {
    malformed(describe(token), "a number, or the elements' bytes as \"0x...\"");
  }
  const Dim bytes = type.shape.elements() * Dim(byte_size(type.dtype));
  const std::size_t found = (digits.size() - 2) / 2;
  if (digits.size() % 2 != 0 || Dim(static_cast<std::int64_t>(found)) != bytes) {
    malformed(std::to_string(digits.size() - 2) + " hex digits",
              "two for each of " + std::to_string(bytes.size()) + " bytes");
  }
  Tensor result(type.dtype, type.shape.sizes());
  for (std::size_t i = 0; i < found; ++i) {
    const int high = hex_value(digits[2 + 2 * i]);
    const int low = hex_value(digits[3 + 2 * i]);
    if (high < 0 || low < 0) malformed("a blob with other characters", "hex digits alone");
    const int value = high * 16 + low;
    if (type.dtype == DType::i1 && value > 1) {
      malformed("the byte " + std::to_string(value), "0 or 1 for each element of i1");
    }
    result.bytes()[i] = static_cast<std::byte>(value);
  }
  return result;
}

Tensor TextReader::tensor(const Elements& elements, const LocatedType& type) const {
  const std::vector<std::int64_t> sizes = type.type.shape.sizes();
  const bool agrees =
      elements.empty ? std::count(sizes.begin(), sizes.end(), 0) > 0 : sizes == elements.sizes;
  if (!agrees) {
    fail(Category::shape_mismatch, type.offset,
         "found " + type.type.to_string() + " for elements listed as " +
             (elements.empty ? "none" : Shape::of(elements.sizes).to_string()) +
             ", expected equal sizes");
  }
  const auto width = static_cast<std::size_t>(byte_size(type.type.dtype));
  Tensor result(type.type.dtype, sizes);
  for (std::size_t i = 0; i < elements.scalars.size(); ++i) {
    const Literal literal = number(elements.scalars[i], type.type.dtype);
    std::memcpy(result.bytes().data() + i * width, &literal.bits, width);
  }
  return result;
}

Op TextReader::dense() {
  const std::size_t begin = current().offset;
  expect_word("dense");
  expect('<');
  std::optional<Token> bytes;
  Elements scalars;
  if (current().kind == TokenKind::string) {
    bytes = take();
  } else {
    scalars = elements();
  }
  expect('>');
  expect(':');
  const LocatedType written = type();
  const Type& type = written.type;
  if (!bytes && !scalars.empty && scalars.sizes.empty()) {
    return Fill{number(scalars.scalars[0], type.dtype), type.shape};
  }
  if (!type.shape.is_static()) {
    fail(Category::unresolved_symbolic_shape, begin,
         "found listed elements for " + type.to_string() + ", expected one for all");
  }
  return Constant{
      std::make_shared<const Tensor>(bytes ? blob(*bytes, type) : tensor(scalars, written))};
}

void TextReader::skip_balanced() {
  std::vector<char> open;
  do {
    if (opens(current())) {
      open.push_back(closing(current().text[0]));
    } else if (closes(current())) {
      if (!current().is(open.back())) fail_expected(std::string("'") + open.back() + "'");
      open.pop_back();
    } else if (current().kind == TokenKind::end || current().kind == TokenKind::bad) {
      fail_expected(std::string("'") + open.back() + "'");
    }
    lexer_.advance();
  } while (!open.empty());
}

void TextReader::skip_attribute_value() {
  const std::size_t begin = current().offset;
  while (!current().is(',') && !closes(current())) {
    if (current().kind == TokenKind::end || current().kind == TokenKind::bad) {
      fail_expected("',' or '}'");
    }
    if (opens(current())) {
      skip_balanced();
    } else {
      lexer_.advance();
    }
  }
  if (current().offset == begin) fail_expected("an attribute");
}

void TextReader::skip_location() {
  if (!accept_word("loc")) return;
  if (!current().is('(')) fail_expected("'('");
  skip_balanced();
}

void TextReader::skip_aliases() {
  while (current().kind == TokenKind::alias) {
    lexer_.advance();
    expect('=');
    if (!current().is_word("loc")) fail_expected("loc(...)");
    skip_location();
  }
}

}  // namespace mulgrad
