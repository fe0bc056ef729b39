// The matmul legaliser: what a target lacks becomes products with constants, elementwise ops and
// the movement that the target has.
#pragma once

#include "core/rewrite/pass.h"
#include "lowering/target.h"

namespace mulgrad {

// Every tensor operand of an elementwise op gets the shape of the result.
//   add(x:[3,4], b:[1,4]) -> add(x, broadcast_in_dim(b))      also for a rank-0 operand
// Literals stay. Bit-exact. After it no elementwise op broadcasts a tensor.
Pass materialize_broadcasts();

// The other way: an elementwise op reads the operand of a broadcast_in_dim where one of the two
// declared broadcasting forms says the same and another operand still gives the result its shape.
//   add(x:[3,4], broadcast_in_dim(b:[4], dims = [1])) -> add(x, reshape(b):[1,4])
//   multiply(x, broadcast_in_dim(s:[]))               -> multiply(x, s)
// Bit-exact. The broadcast stays for its other readers; dead_code removes it. The second form only
// goes as far as the target's kernels follow: the first line above needs OperandForm::any; where
// they take plain operands alone, a broadcast of a single element is read as of rank 0.
Pass elide_broadcasts();
Pass elide_broadcasts(Target target);

// Replaces each reachable node that `target` refuses and that can be said in ops that it takes:
//   reduce sum, mean      products with ones on any axes and rank; mean divides by the count
//                         {sign_of_zero, reassociates}
//   broadcast_in_dim      a product with ones from the other side, contracting over 1; of a single
//                         element ones times it {sign_of_zero}
//   elementwise           operands of size 1 are broadcast so {sign_of_zero}, a single element is
//                         read as of rank 0 {}; where the zero divides, the quotient may be the
//                         other infinity
//   reduce max, min       slices and elementwise maxima where the target has slices {}; else cyclic
//                         column shifts by 1, 2, 4 ... {sign_of_zero, needs_exact_product}
//   reduce product        slices and multiplications {finite_only, reassociates}
//   reduce and, or of i1  the number of ones, by a product, against 0 {}
//   dot_general           transpose and reshape around a product as the target has it
//                         {sign_of_zero}; on a target with plain products only, batches one by one
//                         where it has slices; else one block product of all batches by all
//                         batches, of which the equal ones are selected, so neither Inf nor NaN
//                         leaves its batch {sign_of_zero, needs_exact_product}: that does as many
//                         times the work as there are batches, the region's work_factor, and is not
//                         done for more than 64
//   iota                  a constant {}
//   stop_gradient         its operand {}
//   i1 in other ops       convert to f32, the same op, and back by a comparison with 0 {}
// A node without such a rule, or whose rule would need an op that the target refuses too, stays as
// it is; so does one of symbolic shape: bind first. What is emitted is all taken by the target, so
// a second run changes nothing. Derive before it: stop_gradient is gone after it.
Pass legalize_to_matmul(Target target);

}  // namespace mulgrad
