// Rewriter: rebuilds a program with some nodes replaced. A pass first looks at the whole source and
// decides (a list of Replacement), then apply() rebuilds in one walk.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/expr.h"
#include "core/rewrite/pass.h"

namespace mulgrad {

// The program under construction, with the way from source values to their counterparts.
class Rewriter {
 public:
  // Redeclares the inputs of `source`, which must outlive the rewriter.
  explicit Rewriter(const Program& source);

  const Program& source() const { return source_; }
  Builder& builder() { return builder_; }
  // The counterpart of a source value that was copied or replaced before.
  Var at(ValueId source);
  // The same for an operand; a literal stays.
  Operand at(const Operand& source);
  // The operands of a source node, in order; all must be values.
  std::vector<Var> operands(std::int64_t node);

  // Appends the source node as it is.
  void copy(std::int64_t node);
  // From now on `result` stands for the source node.
  void replace(std::int64_t node, ValueId result);
  // Redeclares the outputs and returns the program.
  Program finish();

 private:
  const Program& source_;
  Builder builder_;
  std::vector<ValueId> nodes_;
  std::vector<Operand> operands_;  // of the node that is being copied
};

struct Replacement {
  std::int64_t root = 0;               // the node whose result is replaced
  std::vector<std::int64_t> consumed;  // further nodes that vanish; nothing else may read them
  Numerics numerics;
  // Emits the new nodes and returns what stands for the root: same type.
  std::function<Var(Rewriter&)> emit;
  std::int64_t work_factor = 1;  // as in Region
};

// Rebuilds with every replacement applied at the place of its root; `replacements` are ascending by
// root. All other nodes keep their order and attributes. Without replacements the result is the
// source itself, unchanged. Emitted nodes inherit the root's origin.
PassResult apply(const Program& source, const std::string& pass,
                 std::span<const Replacement> replacements);

}  // namespace mulgrad
