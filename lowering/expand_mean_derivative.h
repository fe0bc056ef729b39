// expand_mean_derivative: finds the derivative of a mean by what it computes, and makes it a
// product with ones. Declines silently.
//
//   b = broadcast_in_dim(g) : [r,c]      1  fill 1 : [r,1]
//   q = divide(b, literal r*c)           2  dot_general(1, g) : [r,1]
//                                        3  fill 1 : [1,c]
//                                        4  dot_general(2, 3) : [r,c]
//                                        5  multiply(4, literal 1/(r*c)) : [r,c]
//
// The fifth stands for q, where q stood; b vanishes. Numerics {sign_of_zero, ulp(1)}: 1/(r*c) is
// the one inexact step, over every finite g.
//
// All seven clauses must hold, whoever made the nodes:
//   1  q is divide(b, d): a value on the left, a literal d on the right; d is finite
//   2  b is made by a broadcast_in_dim of the same program
//   3  b has type D, [r,c]: rank 2, static, both > 0; D is f32 or f64
//   4  the one operand g of b has type D, [1,1]
//   5  d equals r*c rounded once to D, and r*c does not overflow
//   6  q has type D, [r,c]
//   7  b has exactly one use, by q: it is no output and no capture
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/rewrite/pass.h"

namespace mulgrad {

// Accepts the derivative slot.
Pass expand_mean_derivative();

// The matcher by its parts. Builder makes some clauses hold by construction (clause 6), so they are
// judged here on facts alone.
namespace mean_derivative {

struct Facts {
  std::optional<ValueId> b;  // set, with d, when q has the form divide(b, literal d)
  std::optional<Literal> d;
  std::optional<ValueId> g;  // set when b has the form broadcast_in_dim(g)
  std::string unmatched;     // why the first of these forms does not match
  Type q_type;
  Type b_type;
  Type g_type;
  int b_uses = 0;
};

Facts gather(const Program& program, const Uses& uses, ValueId q);

// Each says what is wrong, or nothing; a clause may be asked when those before it hold.
using Verdict = std::optional<std::string>;
Verdict clause1_divided_by_finite_literal(const Facts& facts);
Verdict clause2_broadcast_of_the_program(const Facts& facts);
Verdict clause3_static_float_matrix(const Facts& facts);
Verdict clause4_single_element_source(const Facts& facts);
Verdict clause5_divisor_is_the_count(const Facts& facts);
Verdict clause6_quotient_type(const Facts& facts);
Verdict clause7_only_use(const Facts& facts);

// In the order of their numbers, from 1.
inline constexpr Verdict (*kClauses[])(const Facts&) = {clause1_divided_by_finite_literal,
                                                        clause2_broadcast_of_the_program,
                                                        clause3_static_float_matrix,
                                                        clause4_single_element_source,
                                                        clause5_divisor_is_the_count,
                                                        clause6_quotient_type,
                                                        clause7_only_use};

// The first failing clause as "clause 5: d = 16.0, r*c = 15", or nothing when all seven hold.
Verdict first_failure(const Facts& facts);

}  // namespace mean_derivative
}  // namespace mulgrad
