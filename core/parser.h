// The parser of the native text form; for users it is parse() in core/text.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/builder.h"
#include "core/text.h"
#include "core/text_reader.h"

namespace mulgrad {

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : in_(text, options.file), customs_(options.customs) {}

  Program run();
  // Of the nodes of the program that run() returned: where in the text their ops stand.
  const std::vector<std::size_t>& offsets() const { return offsets_; }

 private:
  enum class Place : std::uint8_t { argument, result };
  // What an argument or result is called, and where its mark stands.
  struct Mark {
    std::string_view key;  // "mulgrad.name", "mulgrad.seed", "mulgrad.capture"; empty without one
    std::string name;
    std::size_t offset = 0;
  };
  struct Result {
    LocatedType type;
    Mark mark;
  };
  // The types that an op is annotated with.
  struct Annotation {
    std::vector<LocatedType> operands;  // of the operands that are values; unless `uniform`
    LocatedType result;
    bool uniform = false;  // the one type stands for all
  };
  using Routine = ValueId (Parser::*)(std::size_t);

  static const std::unordered_map<std::string_view, Routine>& routines();

  void attributes();  // of the module or the function
  void function();
  void argument();
  Result result();
  Mark marks(Place place);
  void attribute(Mark& mark, Place place);
  void node();
  void return_values(const std::vector<Result>& results);

  // N of the name %N, spelled as printed.
  static std::optional<std::size_t> number_of(std::string_view name);
  void define(const Token& name, ValueId value);
  ValueId look_up(const Token& name) const;
  ValueId value();

  Annotation functional_type(std::size_t values);
  Annotation elementwise_type(const Op& op, std::size_t values);
  void check_type(const LocatedType& written, const Type& actual, const std::string& what,
                  const std::string& node, Category shapes = Category::shape_mismatch) const;
  // Calls f; what it throws without a location gets that of `offset`.
  decltype(auto) located(std::size_t offset, const auto& f) const {
    try {
      return f();
    } catch (const Error& error) {
      throw error.at_location(in_.location(offset));
    }
  }
  ValueId append(std::size_t offset, Op op, std::span<const Operand> operands);
  // Appends the node and holds the annotation against what is inferred.
  ValueId build(std::size_t offset, Op op, std::span<const Operand> operands,
                const Annotation& annotation);
  // For an op all of whose attributes stand before its functional type.
  ValueId finish(std::size_t offset, Op op, const std::vector<Operand>& operands) {
    in_.expect(':');
    const Annotation annotation = functional_type(operands.size());
    return build(offset, std::move(op), operands, annotation);
  }

  // One routine for all elementwise ops, and one overload of read() for each other op: each starts
  // behind the op's name, reads the rest of its line and appends the node.
  template <class T, OpClass op_class>
  ValueId read_op(std::size_t offset) {
    if constexpr (op_class == OpClass::elementwise) {
      return elementwise(offset, T{});
    } else {
      return read(offset, T{});
    }
  }
  ValueId elementwise(std::size_t offset, Op op);
  Comparison direction();
  void check_comparison_type(const Token& token, std::optional<DType> dtype) const;
  Reduction reduction();
  ValueId read(std::size_t offset, const Fill& op);
  ValueId read(std::size_t offset, const Constant&) { return read(offset, Fill{}); }
  ValueId read(std::size_t offset, Iota op);
  ValueId read(std::size_t offset, BroadcastInDim op);
  ValueId read(std::size_t offset, Reshape op);
  ValueId read(std::size_t offset, Transpose op);
  ValueId read(std::size_t offset, Slice op);
  ValueId read(std::size_t offset, Concatenate op);
  ValueId read(std::size_t offset, Pad op);
  ValueId read(std::size_t offset, Reduce op);
  ValueId read(std::size_t offset, Mean op);
  ValueId read(std::size_t offset, DotGeneral op);
  ValueId read(std::size_t offset, Custom op);

  TextReader in_;
  const CustomRegistry& customs_;
  std::optional<Builder> builder_;
  std::vector<std::size_t> offsets_;  // one per node
  // %0, %1 and so on, as far as they are defined in that order; and the other values.
  std::vector<ValueId> numbered_;
  std::unordered_map<std::string_view, ValueId> values_;
  std::set<std::pair<InputRole, std::string>> links_;  // seeds and captures so far
};

}  // namespace mulgrad
