// A fused loop as it runs: lists of calls of block functions on places. Made by fused.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/fused.h"
#include "backends/cpu/fused_functions.h"
#include "backends/cpu/fused_update.h"

namespace mulgrad::cpu {

// Where a value lies while a block is worked on.
struct Place {
  enum class In : std::uint8_t { registers, constants, inputs, results };
  In in;
  std::size_t index;  // which input or result; the offset in bytes of a block register or constant
  // How far the value of the next row and of the next column is: not 0 in inputs and results alone.
  std::int64_t row_bytes = 0;
  std::int64_t column_bytes = 0;
};

struct BlockCall {
  BlockFunction function;
  std::array<std::uint16_t, 4> places;  // result, then operands; what is not used repeats one
  Extent extent;                        // of the elements that the function handles
  // One call for every row of the block, each as many bytes further as `strides` says per place.
  bool by_row = false;
  std::array<std::int64_t, 4> strides = {};
  bool first_columns_only = false;  // where a row is worked on in parts
};

struct FusedProgram {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Block block;                           // the largest
  std::vector<Place> places;             // in the order of Place::In
  std::vector<std::uint64_t> constants;  // the bits of literals
  std::size_t scratch_bytes = 0;

  std::vector<BlockCall> once;         // scalars, and accumulators of scalars
  std::vector<BlockCall> before_rows;  // for each part of the columns: rows, their accumulators
  std::vector<BlockCall> on_block;     // for each block of rows
  std::vector<BlockCall> after_rows;   // for each part of the columns: sums over the rows
  std::vector<BlockCall> at_end;       // scalar sums

  // The calls above in turn, where all is one block, which is what small loops are.
  struct SmallCall {
    BlockFunction function;
    std::array<std::uint16_t, 4> places;
    std::int64_t elements;
  };
  std::vector<SmallCall> only_block;
  // Or, behind the calls of `once`, one pass over everything.
  UpdateFunction update = nullptr;
  std::vector<std::uint16_t> update_places;

  void run(std::span<std::byte* const> results, std::span<const std::byte* const> operands) const;
};

}  // namespace mulgrad::cpu
