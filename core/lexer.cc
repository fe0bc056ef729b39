#include "core/lexer.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace mulgrad {
namespace {

// Of ASCII alone, whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }
bool is_word_char(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }
bool is_value_char(char c) { return is_word_char(c) || c == '-'; }

template <class Predicate>
std::size_t span_of(std::string_view text, std::size_t from, Predicate predicate) {
  while (from < text.size() && predicate(text[from])) ++from;
  return from;
}

// Behind the string's closing quote, or nullopt when the line ends first.
std::optional<std::size_t> string_end(std::string_view text, std::size_t open) {
  for (std::size_t i = open + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return std::nullopt;
}

// A number is whatever could belong to one: its reader knows the dtype and checks the spelling.
std::size_t number_end(std::string_view text, std::size_t from) {
  std::size_t i = from + (text[from] == '-' ? 1 : 0);
  const bool hex = text.substr(i, 2) == "0x" || text.substr(i, 2) == "0X";
  while (i < text.size()) {
    const bool sign =
        (text[i] == '+' || text[i] == '-') && !hex && (text[i - 1] == 'e' || text[i - 1] == 'E');
    if (!is_word_char(text[i]) && !sign) break;
    ++i;
  }
  return i;
}

std::string unescaped(std::string_view inner) {
  std::string result;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\' || i + 1 == inner.size()) {
      result.push_back(inner[i]);
      continue;
    }
    const char next = inner[++i];
    const int high = hex_value(next);
    const int low = i + 1 < inner.size() ? hex_value(inner[i + 1]) : -1;
    if (high >= 0 && low >= 0) {
      result.push_back(static_cast<char>(high * 16 + low));
      ++i;
    } else {
      result.push_back(next == 'n' ? '\n' : next == 't' ? '\t' : next);
    }
  }
  return result;
}

void append_hex_escape(std::string& out, char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += {'\\', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  constexpr std::size_t kLongest = 40;
  std::string text;
  for (const char c : token.text.substr(0, kLongest)) {
    if (is_printable(c)) {
      text.push_back(c);
    } else {
      append_hex_escape(text, c);
    }
  }
  if (token.text.size() > kLongest) text += "...";
  if (token.kind == TokenKind::bad) {
    return token.text.starts_with('"') ? "the unterminated string " + text : "the byte " + text;
  }
  return "'" + text + "'";
}

std::string content(const Token& token) {
  std::string_view text = token.text;
  if (token.kind == TokenKind::symbol || token.kind == TokenKind::value) text.remove_prefix(1);
  if (!text.starts_with('"')) return std::string(text);
  return unescaped(text.substr(1, text.size() - 2));
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (is_printable(c)) {
      result.push_back(c);
    } else {
      append_hex_escape(result, c);
    }
  }
  return result + "\"";
}

std::string symbol_text(std::string_view name) {
  const bool plain =
      !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), is_word_char);
  return "@" + (plain ? std::string(name) : quoted(name));
}

void Lexer::seek(std::size_t offset) {
  std::size_t i = offset;
  while (true) {
    i = span_of(text_, i, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
    if (text_.substr(i, 2) != "//") break;
    i = span_of(text_, i, [](char c) { return c != '\n'; });
  }
  const auto take = [&](TokenKind kind, std::size_t end) {
    current_ = {kind, text_.substr(i, end - i), i};
  };
  if (i == text_.size()) return take(TokenKind::end, i);
  const char c = text_[i];
  const char next = i + 1 < text_.size() ? text_[i + 1] : '\0';
  if (is_letter(c)) return take(TokenKind::word, span_of(text_, i, is_word_char));
  if (is_digit(c) || (c == '-' && is_digit(next))) {
    return take(TokenKind::number, number_end(text_, i));
  }
  if (c == '-' && next == '>') return take(TokenKind::arrow, i + 2);
  if (c == '%' && is_value_char(next)) {
    return take(TokenKind::value, span_of(text_, i + 1, is_value_char));
  }
  if (c == '#' && is_letter(next)) {
    return take(TokenKind::alias, span_of(text_, i + 1, is_word_char));
  }
  if (c == '@' && is_letter(next)) {
    return take(TokenKind::symbol, span_of(text_, i + 1, is_word_char));
  }
  if (c == '"' || (c == '@' && next == '"')) {
    const std::size_t open = c == '"' ? i : i + 1;
    if (const auto end = string_end(text_, open)) {
      return take(c == '"' ? TokenKind::string : TokenKind::symbol, *end);
    }
    i = open;
    return take(TokenKind::bad, span_of(text_, open, [](char d) { return d != '\n'; }));
  }
  take(is_printable(c) ? TokenKind::punctuation : TokenKind::bad, i + 1);
}

std::string Lexer::position(std::size_t offset) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return std::to_string(line) + ":" + std::to_string(column);
}

}  // namespace mulgrad
