// What every reader of an MLIR-like text needs: expectations that fail with a location, types,
// lists, tensor constants, and the skipping of what the IR does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/lexer.h"
#include "core/op.h"

namespace mulgrad {

struct LocatedType {
  Type type;
  std::size_t offset = 0;
};

class TextReader {
 public:
  TextReader(std::string_view text, std::string file) : lexer_(text), file_(std::move(file)) {}

  const Token& current() const { return lexer_.current(); }
  Token take();

  std::string location(std::size_t offset) const { return file_ + ":" + lexer_.position(offset); }
  [[noreturn]] void fail(Category category, std::size_t offset, const std::string& message,
                         const std::string& node = {}) const;
  // parse_error at the current token: "found '...', expected ...".
  [[noreturn]] void fail_expected(std::string_view expected) const;

  bool accept(char punctuation);
  bool accept_word(std::string_view word);
  void expect(char punctuation);
  void expect_word(std::string_view word);
  Token expect(TokenKind kind, std::string_view expected);

  // tensor<3x[B]xf32>. Throws missing_dtype_metadata or missing_shape_metadata where a part of it
  // is left out.
  LocatedType type();
  // A size: 5, [B] or [12*B].
  Dim dim();
  std::int64_t integer();
  // [0, -1]
  std::vector<std::int64_t> integers();
  // name = [0, -1]
  std::vector<std::int64_t> named_integers(std::string_view name);
  // "..."
  std::string string();

  // The number that a token spells in `dtype`; parse_error where it spells none.
  Literal number(const Token& token, DType dtype) const;
  // dense<...> : T as a Fill where it is written as a splat, else as a Constant.
  Op dense();

  // What follows an attribute's "=", up to the comma or closing bracket behind it.
  void skip_attribute_value();
  // A bracket and all that it holds; the current token opens it.
  void skip_balanced();
  // loc(...), where there is one.
  void skip_location();
  // #name = loc(...), as often as there is one.
  void skip_aliases();

 private:
  struct Elements;
  Dim scan_dim(std::size_t& offset) const;
  std::size_t skip_space(std::size_t offset) const;
  [[noreturn]] void fail_at(std::size_t offset, std::string_view expected) const;
  Elements elements();
  Tensor blob(const Token& token, const Type& type) const;
  Tensor tensor(const Elements& elements, const LocatedType& type) const;

  Lexer lexer_;
  std::string file_;
};

}  // namespace mulgrad
