// Tensors as rows: most layers work on the last axis alone, whatever stands before it, and plain
// matrices are what every target multiplies.
#pragma once

#include "core/expr.h"

namespace mulgrad {

// x [..., n] as [rows, n]; a matrix stays as it is. Throws shape_mismatch naming `where` for rank
// 0.
Var as_rows(const char* where, Var x);

// rows [rows, n] as [leading..., n], where all but the last size of `shape` are the leading ones.
Var like_rows_of(const Shape& shape, Var rows);

// i1 [rows, n] from ids, in row-major order: is the column's number the id? Nowhere for an id that
// is not in 0 .. n-1. Both are compared as floats, those that count for `dtype`, so that only a
// convert sees an integer. Throws shape_mismatch naming `where` unless floats can count to n >= 1,
// dtype_mismatch for ids that are no integers.
Var is_id(const char* where, Var ids, const Dim& n, DType dtype);

}  // namespace mulgrad
