// The vector loops that fused.cc strings together: each does one op on one block, whose values lie
// in the first-level cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/op.h"

namespace mulgrad::cpu {

// The whole rows, or the part of one row, that a loop works on at a time.
struct Block {
  std::int64_t rows;
  std::int64_t columns;
};

// Elementwise functions handle n elements, and r may be one of a, b, c; the others go by the block.
// What is not read may be any pointer.
using BlockFunction = void (*)(std::byte* r, const std::byte* a, const std::byte* b,
                               const std::byte* c, std::int64_t n, const Block& block);

// How an operand is read: element by element, its first for all, or as the row or column of a block
// whose rows are a part of a vector, or whole vectors, the columns being a power of two.
enum class Form : std::uint8_t { vector, scalar, short_row, short_column, long_row, long_column };
enum class RowLength : std::uint8_t { part_of_vector, whole_vectors, other };
RowLength row_length(std::size_t element_bytes, std::int64_t columns);

// What is written behind the last element: nothing, or up to kOverrun bytes, which lets the call
// after it read whole vectors that were written whole. (A processor hands on what was just written
// only in the pieces that it was written in, else it waits.)
enum class Tail : std::uint8_t { exact, whole };
inline constexpr std::size_t kOverrun = 64;

struct FunctionKey {
  OpKind kind;
  Comparison direction = Comparison::EQ;  // of a compare
  DType operand;                          // of the last operand
  DType result;
  Tail tail = Tail::exact;
  std::array<Form, 3> forms = {};
};

// Null where there is none. A function exists for every op that can be fused with all operands
// being vectors, and for the other forms that programs use much; those that commute have the scalar
// second.
BlockFunction arithmetic_function(const FunctionKey& key);  // what rounds exactly
BlockFunction math_function(const FunctionKey& key);        // exponential and the like

// Sums of f32 accumulate in f64. An accumulator is of accumulator_of(kind, dtype), starts from the
// identity, and sums start from -0 so that a sum of negative zeros is one.
DType accumulator_of(Reduction kind, DType dtype);
enum class Reducing : std::uint8_t {
  rows_away,     // r[column] of accumulators with a [rows, columns]
  columns_away,  // r[row] = a [rows, columns] reduced; over no columns the identity, a sum's +0.
                 // Tail::whole where r is no result of the loop, else Tail::exact
  all,           // the accumulator r with n elements of a
  rows_at_once,  // as rows_away and all, but without an accumulator: r is the result, of at least
  all_at_once    // one row or element
};
BlockFunction reduction_function(Reduction kind, DType dtype, Reducing reducing, Tail tail);

// Of elements of 1, 4 or 8 bytes, with Tail::whole.
enum class Spread : std::uint8_t {
  scalar,  // r[i] = a[0] for n elements
  row,     // r [rows, columns] has a in every row
  column   // r [rows, columns] has a in every column
};
BlockFunction spread_function(std::size_t element_bytes, Spread spread);

}  // namespace mulgrad::cpu
