// Builder: the only thing that makes nodes. It infers each type, checks every numbered constraint
// of core/README.md, and throws on the spot.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash_index.h"
#include "core/inference.h"
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

  // Appends a node of a program with these operands for its own. Where they are typed alike nothing
  // is left to infer or check; else as add().
  ValueId copy(const Program& source, std::int64_t node, std::span<const Operand> operands);
  // Goes on with these inputs, in this order and under new names, and with the nodes that are
  // marked; outputs follow. What is kept may read nothing that is not. Throws as input().
  struct KeptInput {
    ValueId value;
    std::string name;
  };
  void keep(std::span<const KeptInput> inputs, const std::vector<bool>& nodes);
  // Makes room for that many nodes in all.
  void reserve(std::size_t nodes);

  // Names as for input().
  void output(std::string name, ValueId value, OutputRole role = OutputRole::output);

  // Nodes added from now on carry this origin.
  void set_origin(Origin origin) { origin_ = origin; }

  // Throws missing_dependency for a value that was not made here or left with finish().
  const Type& type(ValueId value) const;
  // The nodes so far. A span is invalidated by the next add().
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Input> inputs() const { return data_.inputs; }
  std::span<const Origin> origins() const { return data_.origins; }
  std::string describe(ValueId value) const;

  // The program with more outputs; it shares the nodes. Throws what output() throws.
  static Program with_outputs(const Program& program, std::span<const Output> added);

  // The program so far; the builder is left with its name and nothing else.
  Program finish();

 private:
  void check_value(ValueId value) const;
  void add_output(std::string name, ValueId value, OutputRole role);
  Program::Data data_;  // its nodes are given by finish()
  std::vector<Node> nodes_;
  std::vector<OperandType> types_;  // of the node that is being made: kept for its memory
  Origin origin_ = kNoOrigin;
  HashIndex input_names_;
  HashIndex output_names_;
};

}  // namespace mulgrad
