// Cleaning: small passes that the other passes leave work for. Each is bit-exact unless it says
// otherwise, takes symbolic shapes, accepts every slot, and does all it can in one run.
#pragma once

#include "core/rewrite/pass.h"

namespace mulgrad {

// op(constants) -> constant    [if it is cheap, and the constant small or no larger than one read]
// op(fills)     -> fill        [elementwise, broadcast, reshape, transpose: of any size]
// Evaluated by the interpreter. Fill, constant and iota count as constants, and stay themselves; so
// do ops of i1, though what reads them is folded.
Pass fold_constants();

// y = op(x); z = op(x) -> z is y    [same attributes, operands in the same order]
Pass common_subexpressions();

// Drops every node that no output or capture depends on.
Pass dead_code();

// transpose(transpose(x, p), q) -> transpose(x, p of q)
// reshape(reshape(x))           -> reshape(x)
// transpose(x), reshape(x)      -> x            [if nothing moves]
Pass transpose_pairs();

// reduce(x, axes), mean(x, axes) -> reshape(x)  [if every reduced axis has size 1]
// {sign_of_zero}: a sum turns -0 into 0.
Pass extent_one_reduce_to_reshape();

// dot_general(x:[n,1], 1:[1,1]) -> x    and from the other side: dot_general(1:[1,1], x:[1,n]) -> x
// {sign_of_zero}: a product turns -0 into 0.
Pass unit_products();

// stop_gradient(x) -> x    Derive before it.
Pass remove_stop_gradient();

}  // namespace mulgrad
