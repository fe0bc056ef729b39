// Program: a name, typed inputs, single-result nodes in topological order, and outputs. A value:
// copies are cheap (they share immutable storage), comparable and hashable. Only Builder makes one.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/op.h"
#include "core/type.h"

namespace mulgrad {

// Names a value of one program: an input or the result of a node.
class ValueId {
 public:
  static ValueId input(std::int64_t index) { return ValueId(static_cast<std::int32_t>(~index)); }
  static ValueId node(std::int64_t index) { return ValueId(static_cast<std::int32_t>(index)); }

  bool is_input() const { return raw_ < 0; }
  bool is_node() const { return raw_ >= 0; }
  std::int64_t index() const { return raw_ < 0 ? ~raw_ : raw_; }
  auto operator<=>(const ValueId&) const = default;
  // As printed: "%arg1" or "%7".
  std::string to_string() const;

 private:
  explicit ValueId(std::int32_t raw) : raw_(raw) {}
  std::int32_t raw_;
};

// What a node reads: a value, or a literal written in place (elementwise ops only).
class Operand {
 public:
  Operand(ValueId value) : content_(value) {}      // NOLINT: operands convert
  Operand(Literal literal) : content_(literal) {}  // NOLINT

  bool is_literal() const { return content_.index() == 1; }
  ValueId value() const { return std::get<ValueId>(content_); }
  const Literal& literal() const { return std::get<Literal>(content_); }
  bool operator==(const Operand& other) const;

 private:
  std::variant<ValueId, Literal> content_;
};

struct Node {
  Op op;
  std::vector<Operand> operands;
  Type type;  // of the result

  bool operator==(const Node&) const = default;
  std::string_view text_name() const { return info(op).text_name; }
};

// A derivative program's inputs are seeds (one per output, linked by its name) and captures (each
// linked by name to a captured result of the forward program).
enum class InputRole : std::uint8_t { input, seed, capture };
enum class OutputRole : std::uint8_t { output, capture };

struct Input {
  std::string name;  // a seed's name is the output's; a capture's is the link ("c0")
  Type type;
  InputRole role = InputRole::input;
  bool operator==(const Input&) const = default;
};

struct Output {
  std::string name;
  ValueId value;
  OutputRole role = OutputRole::output;
  bool operator==(const Output&) const = default;
};

// Where a node came from, in a side table that passes carry along: the index of a node of the
// program before any pass, or -1. No part of ==, hash or text.
using Origin = std::int32_t;
inline constexpr Origin kNoOrigin = -1;

class Program {
 public:
  Program();  // empty, named "main"
  // A move copies: a program that was moved from is still there.
  Program(const Program&) = default;
  Program& operator=(const Program&) = default;

  const std::string& name() const { return data_->name; }
  std::span<const Input> inputs() const { return data_->inputs; }
  std::span<const Node> nodes() const { return *data_->nodes; }
  std::span<const Output> outputs() const { return data_->outputs; }
  std::span<const Origin> origins() const { return data_->origins; }  // one per node

  const Node& node(ValueId value) const { return nodes()[static_cast<std::size_t>(value.index())]; }
  // Throws missing_dependency for a value that the program does not have.
  const Type& type(ValueId value) const;
  // "%7 stablehlo.add" or "%arg0 \"x\"", for messages.
  std::string describe(ValueId value) const;
  // The input or output of that role and name, or -1.
  std::int64_t find_input(std::string_view name, InputRole role = InputRole::input) const;
  std::int64_t find_output(std::string_view name, OutputRole role = OutputRole::output) const;

  // Equal name, inputs, nodes (attributes and operand order included) and outputs.
  bool operator==(const Program& other) const;
  // Stable across processes; equal programs have equal hashes.
  std::uint64_t hash() const;
  // The same program whose nodes are their own origins: what a pipeline starts from.
  Program with_fresh_origins() const;

 private:
  void check_value(ValueId value) const;
  friend class Builder;
  struct Data {
    std::string name = "main";
    std::vector<Input> inputs;
    // Apart, as programs that differ in outputs or origins alone share them.
    std::shared_ptr<const std::vector<Node>> nodes;  // never null
    std::vector<Output> outputs;
    std::vector<Origin> origins;
  };
  explicit Program(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

// How often each value is read: by operands (a repeated operand counts each time) and by outputs
// and captures.
class Uses {
 public:
  explicit Uses(const Program& program);
  int count(ValueId value) const {
    return value.is_input() ? inputs_[at(value)] : nodes_[at(value)];
  }

 private:
  static std::size_t at(ValueId value) { return static_cast<std::size_t>(value.index()); }
  std::vector<int> inputs_;
  std::vector<int> nodes_;
};

// A flag per node: does an output or capture depend on it?
std::vector<bool> reachable_nodes(const Program& program);
// The same for a list of nodes and what is read of them.
std::vector<bool> reachable_nodes(std::span<const Node> nodes, std::span<const ValueId> roots);

// Re-infers every node and checks order, names, roles and output references: what Builder
// guarantees, checked again after a pass. Throws Error.
void verify(const Program& program);

// Gives every symbol its number. Throws invalid_argument for a symbol that is missing from
// `bindings`, a binding that the program does not use, or a negative size.
Program bind(const Program& program, const Bindings& bindings);

// The symbols that occur in the types of the program, sorted.
std::vector<std::string> symbols(const Program& program);

}  // namespace mulgrad
