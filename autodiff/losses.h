// Softmax and losses: emitters of ordinary expressions, so every derivative follows from the ops.
#pragma once

#include "core/expr.h"

namespace mulgrad {

// exp(z) / sum(exp(z)) along `axis` (negative: from the end), z = x - max(x), of x's type. The
// maximum moves no value and stands under stop_gradient. A slice along the axis that holds +inf or
// only -inf becomes NaN. Throws reduction_shape_mismatch for an axis that x does not have and
// dtype_mismatch for a dtype other than float.
Var softmax(Var x, std::int64_t axis);

// log(softmax(x)) without the rounding of the quotient: z - log(sum(exp(z))). As softmax.
Var log_softmax(Var x, std::int64_t axis);

// The mean over rows of -log_softmax(logits)[row, labels[row]], of rank 0 and logits' dtype.
// logits: float [...,C], labels: integer [...] in 0 .. C-1, so [B,C] and [B], or [B,T,C] and [B,T];
// a row is what stands on the last axis, and B may be symbolic. Labels are compared as floats with
// 0 .. C-1, so that only a convert sees an integer; a label out of range selects nothing and must
// be refused where data is read. The label's logit is selected, so -inf takes a class away that is
// not the label's. With no rows the loss is NaN. Throws shape_mismatch or symbolic_shape_mismatch
// for logits of rank below 2, labels that are not one per row, no class, or more classes than
// floats can count; dtype_mismatch for other dtypes.
Var softmax_cross_entropy(Var logits, Var labels);

// The mean over all elements of (prediction - target)^2, of rank 0. Both have one float type: a
// target of another shape would broadcast silently. Throws shape_mismatch, symbolic_shape_mismatch
// or dtype_mismatch.
Var mse(Var prediction, Var target);

}  // namespace mulgrad
