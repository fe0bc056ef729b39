// Tokens of the MLIR-like text forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mulgrad {

enum class TokenKind : std::uint8_t {
  end,
  value,        // %0, %arg1
  symbol,       // @main, @"<lambda>"
  alias,        // #loc9, #stablehlo.gather
  word,         // stablehlo.add, tensor, true
  number,       // 15, -1.5e+01, 0x7FC0; checked only where its dtype is known
  string,       // "..." with its quotes
  arrow,        // ->
  punctuation,  // any other printable character
  bad           // an unterminated string, or a byte that no token holds
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // as spelled
  std::size_t offset = 0;

  bool is(char c) const { return kind == TokenKind::punctuation && text[0] == c; }
  bool is_word(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

// For messages: "'add'", "the end of the text"; never an unprintable byte.
std::string describe(const Token& token);

// The content of a string token without quotes and escapes (\" \\ \n \t and two hex digits), of a
// symbol without its @, of a value without its %.
std::string content(const Token& token);

// The value of a hex digit, or -1.
int hex_value(char c);

// A string literal that content() turns back into `text`.
std::string quoted(std::string_view text);

// A symbol: @name, or @"..." where the name is no plain word.
std::string symbol_text(std::string_view name);

// Holds one token at a time; white space and // comments lie between tokens. Accepts any bytes.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { seek(0); }

  const Token& current() const { return current_; }
  void advance() { seek(current_.offset + current_.text.size()); }
  // Makes the first token at or behind `offset` the current one.
  void seek(std::size_t offset);
  std::string_view text() const { return text_; }
  // "line:col", counted from 1, columns in bytes.
  std::string position(std::size_t offset) const;

 private:
  std::string_view text_;
  Token current_;
};

}  // namespace mulgrad
