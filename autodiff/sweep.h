// The state of one reverse walk, and what a derivative rule sees of it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/expr.h"
#include "core/program.h"

namespace mulgrad {

// A set of values of one program.
class ValueSet {
 public:
  explicit ValueSet(const Program& program)
      : inputs_(program.inputs().size()), nodes_(program.nodes().size()) {}
  bool contains(ValueId value) const { return flags(value)[index(value)]; }
  void insert(ValueId value) { (value.is_input() ? inputs_ : nodes_)[index(value)] = true; }

 private:
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value.index()); }
  const std::vector<bool>& flags(ValueId value) const {
    return value.is_input() ? inputs_ : nodes_;
  }
  std::vector<bool> inputs_;
  std::vector<bool> nodes_;
};

// Where a contribution to a cotangent comes from: contributions are summed in this order.
struct Use {
  std::int32_t node;
  std::int32_t operand;
  auto operator<=>(const Use&) const = default;
};

// Collects the contributions to the cotangent of each wanted value in a draft of the derivative
// program. The draft may hold more than the gradients need; derive() keeps what they reach.
class Sweep {
 public:
  // `forward` must outlive the sweep.
  Sweep(const Program& forward, ValueSet wanted);

  const Program& forward() const { return forward_; }
  Builder& draft() { return draft_; }

  // Does a cotangent of this value lead to a gradient that was asked for?
  bool wanted(ValueId value) const { return wanted_.contains(value); }
  // The forward value in the draft: fill, constant and iota are cloned; an i1 value that an
  // elementwise or movement op made is computed again from what it reads, as not every device can
  // hand a mask from one program to another; others become an input.
  Var read(ValueId value);
  // Adds to the cotangent of a wanted value. A contribution of a larger shape, from an operand that
  // was broadcast by an elementwise op, is first summed over the axes that grew.
  void contribute(ValueId value, Use use, Var cotangent);
  // The sum of the contributions so far, a left fold in the order of the uses; nothing when there
  // are none. The contributions are forgotten.
  std::optional<Var> total(ValueId value);

  // The forward value that an input of the draft stands for; nothing for a seed.
  std::optional<ValueId> source(ValueId draft_input) const;

 private:
  // A table with an entry per value of the forward program.
  template <class T>
  struct Table {
    std::vector<T> inputs;
    std::vector<T> nodes;
    T& operator[](ValueId value) {
      return (value.is_input() ? inputs : nodes)[static_cast<std::size_t>(value.index())];
    }
  };
  // One of the contributions to a value, and where the one before it is listed, or -1.
  struct Contribution {
    Use use;
    ValueId cotangent;
    std::int32_t previous;
  };

  // Is the value made in the draft from its operands, where it has any?
  bool is_made_again(ValueId value) const;
  ValueId capture(ValueId value);

  const Program& forward_;
  ValueSet wanted_;
  Builder draft_;
  Table<std::optional<ValueId>> reads_;
  std::vector<Contribution> contributions_;
  Table<std::int32_t> last_;                          // contribution to the value, or -1
  std::vector<std::pair<Use, ValueId>> parts_;        // of the total that is being made
  std::vector<std::pair<ValueId, ValueId>> sources_;  // draft input, forward value; ascending
};

// An operand or the result of the node whose rule runs. Its type is free to ask for; using it as a
// Var or Term reads it. A literal operand reads as a Term in place, as a Var through a rank-0 fill.
class Primal {
 public:
  static Primal operand(Sweep& sweep, std::int64_t node, std::int64_t index);
  static Primal result(Sweep& sweep, std::int64_t node);

  Type type() const;
  DType dtype() const { return type().dtype; }
  Shape shape() const { return type().shape; }
  std::int64_t rank() const { return type().rank(); }

  bool is_literal() const { return value_.is_literal(); }
  const Literal& literal() const { return value_.literal(); }
  // A literal, fill or constant, or a broadcast or reshape of one?
  bool is_constant() const;
  operator Var() const;   // NOLINT: primals convert
  operator Term() const;  // NOLINT

  // Only a wanted operand takes a cotangent: dtype as the operand, shape as the operand or, for an
  // elementwise op, as the result.
  bool wanted() const { return !is_literal() && sweep_->wanted(value_.value()); }
  void add(Var cotangent) const { sweep_->contribute(value_.value(), use_, cotangent); }

 private:
  Primal(Sweep& sweep, Use use, Operand value) : sweep_(&sweep), use_(use), value_(value) {}
  Sweep* sweep_;
  Use use_;
  Operand value_;
};

}  // namespace mulgrad
