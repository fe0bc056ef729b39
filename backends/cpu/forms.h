// The forms of a program that the CPU's kernels know best, so that a program made for a target
// without reductions or broadcasts plans as the direct one does.
#pragma once

#include "core/program.h"

namespace mulgrad::cpu {

// transposes, of products' operands and results -> axes of the product
// products with ones -> sums and broadcasts      {sign_of_zero, reassociates}
// maxima by cyclic shifts of finite values -> reductions, and with the cases around them that stand
//   for values that are not finite -> the maximum itself      {sign_of_zero}
// maxima and minima of halves, down to one element -> reductions      {sign_of_zero}
// block products with a mask, and products of slices, concatenated -> products by batch
// means -> sums and divisions; broadcasts and fills that an elementwise op can do without -> gone
// max(x, c) > c in place of x > c: what is stored already is read
// Equal nodes are one afterwards and dead ones gone. The program is bound; inputs and outputs stay.
Program kernel_forms(const Program& program);

}  // namespace mulgrad::cpu
