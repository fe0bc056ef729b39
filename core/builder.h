// Builder: the only thing that makes nodes. It infers each type, checks every numbered constraint
// of core/README.md, and throws on the spot.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/program.h"

namespace mulgrad {

class Builder {
 public:
  explicit Builder(std::string name = "main");

  // Throws invalid_name for a name outside [A-Za-z_][A-Za-z0-9_.$-]* or used twice in its role.
  ValueId input(std::string name, Type type, InputRole role = InputRole::input);

  // Appends a node. Throws Error with the node named; nothing is appended then. A Constant whose
  // elements are all bit-equal becomes a Fill; axes of Reduce and Mean counted from the end
  // (negative) become counted from the front, and reduction axes are sorted.
  ValueId add(Op op, std::span<const Operand> operands);
  ValueId add(Op op, std::initializer_list<Operand> operands) {
    return add(std::move(op), std::span<const Operand>(operands.begin(), operands.size()));
  }

  // Names as for input().
  void output(std::string name, ValueId value, OutputRole role = OutputRole::output);

  // Nodes added from now on carry this origin.
  void set_origin(Origin origin) { origin_ = origin; }

  // Throws missing_dependency for a value that was not made here or left with finish().
  const Type& type(ValueId value) const;
  // The nodes so far. A span is invalidated by the next add().
  std::span<const Node> nodes() const { return data_.nodes; }
  std::span<const Input> inputs() const { return data_.inputs; }
  std::string describe(ValueId value) const;

  // The program so far; the builder is left with its name and nothing else.
  Program finish();

 private:
  void check_value(ValueId value) const;
  Program::Data data_;
  Origin origin_ = kNoOrigin;
  std::unordered_set<std::string> names_;  // role digit + name
};

}  // namespace mulgrad
