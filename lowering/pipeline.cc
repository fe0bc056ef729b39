#include "lowering/pipeline.h"

#include "lowering/cleaning.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "lowering/legalize.h"

namespace mulgrad {

std::vector<Pass> default_pipeline(const Target& target, Slot slot) {
  std::vector<Pass> passes;
  // The expansions come first: they know means and their derivatives by the form in which tracing
  // and deriving leave them, and every later pass may change that form.
  if (slot == Slot::forward && !target.has(OpKind::Mean)) {
    // The legaliser takes the means outside of its domain.
    passes.push_back(expand_mean(OutsideDomain::leave));
  }
  if (slot == Slot::derivative && !target.has(OpKind::BroadcastInDim)) {
    passes.push_back(expand_mean_derivative());
  }
  // What is simpler without the target in mind; stop_gradient hides constants, so it goes first.
  passes.push_back(remove_stop_gradient());
  passes.push_back(extent_one_reduce_to_reshape());
  // A broadcast of a constant is a constant, for which the next two would find other forms.
  passes.push_back(fold_constants());
  // A broadcast that an elementwise kernel does by itself needs no product.
  passes.push_back(elide_broadcasts(target));
  passes.push_back(legalize_to_matmul(target));
  // The legaliser works node by node: it leaves constants that are equal, products of constants,
  // and movements back and forth.
  passes.push_back(fold_constants());
  // The expansions multiply by ones from both sides, also where a side is a single element.
  passes.push_back(unit_products());
  passes.push_back(transpose_pairs());
  // Equal nodes once all operands have their final form.
  passes.push_back(common_subexpressions());
  // Last, as every pass before leaves nodes that nothing reads any more.
  passes.push_back(dead_code());
  return passes;
}

}  // namespace mulgrad
