// expand_mean: means over both axes of a matrix become products with ones. Fails closed.
//
//   m = mulgrad.mean x : [r,c], both axes      1  fill 1 : [c,1]
//                                              2  dot_general(x, 1) : [r,1]
//                                              3  fill 1 : [1,r]
//                                              4  dot_general(3, 2) : [1,1]
//                                              5  multiply(4, literal 1/(r*c)) : [1,1]
//                                              6  reshape : []   (only when keepdims is false)
//
// The last of these stands for m, where m stood; every other node keeps its order and attributes.
// Means that no output or capture depends on are left alone. Numerics {sign_of_zero, reassociates,
// ulp(1)}: an intermediate sum may overflow where the mean itself would not.
//
// Every mean is judged before anything is rewritten, by these clauses in order:
//   1  one operand: by construction
//   2  its rank is 2, else unsupported_reduction
//   3  the axes are both, else unsupported_reduction: a partial reduction
//   4  the sizes are static, else unresolved_symbolic_shape; they are > 0, r*c fits a signed 64-bit
//      integer and 1/(r*c) is finite and not zero in the dtype, else unsupported_reduction
//   5  the dtype is f32 or f64, else dtype_not_differentiable
//   6  the result type: by construction
// If a clause fails, the pass throws one Error that lists every such mean with its node, its first
// failing clause and the category of that; the Error's own node and category are the first one's.
// With OutsideDomain::leave such means stay as they are instead, for a later pass, and the others
// expand.
#pragma once

#include <cstdint>

#include "core/rewrite/pass.h"

namespace mulgrad {

enum class OutsideDomain : std::uint8_t { refuse, leave };

// Accepts the forward slot; with OutsideDomain::refuse, leaves "no mean".
Pass expand_mean(OutsideDomain outside = OutsideDomain::refuse);

}  // namespace mulgrad
