#include "backends/cpu/fused_program.h"

#include <algorithm>

namespace mulgrad::cpu {
namespace {

constexpr std::size_t kAlignment = 64;

void call_by_row(const BlockCall& call, std::byte* const* places, const Block& block) {
  const auto [r, a, b, c] = call.places;
  std::byte* at[] = {places[r], places[a], places[b], places[c]};
  for (std::int64_t row = 0; row < block.rows; ++row) {
    call.function(at[0], at[1], at[2], at[3], block.columns, block);
    for (std::size_t i = 0; i < 4; ++i) at[i] += call.strides[i];
  }
}

void call_all(std::span<const BlockCall> calls, std::byte* const* places, const Block& block,
              bool first_columns) {
  // By extent.
  const std::int64_t counts[] = {block.rows * block.columns, block.columns, block.rows, 1};
  for (const BlockCall& call : calls) {
    if (call.by_row) {
      call_by_row(call, places, block);
    } else if (first_columns || !call.first_columns_only) {
      const auto [r, a, b, c] = call.places;
      call.function(places[r], places[a], places[b], places[c],
                    counts[static_cast<int>(call.extent)], block);
    }
  }
}

}  // namespace

void FusedProgram::run(std::span<std::byte* const> results,
                       std::span<const std::byte* const> operands) const {
  // On the stack, where it is warm from the loop before.
  auto* const memory = static_cast<std::byte*>(
      __builtin_alloca(scratch_bytes + kAlignment + places.size() * sizeof(std::byte*)));
  auto** const at = reinterpret_cast<std::byte**>(memory);
  std::byte* const behind = reinterpret_cast<std::byte*>(at + places.size());
  std::byte* const registers = behind + (-reinterpret_cast<std::uintptr_t>(behind)) % kAlignment;
  // Nothing is written by the pointers to operands and constants.
  auto* const first_constant =
      reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(constants.data()));
  std::size_t i = 0;
  const auto resolve = [&](Place::In in, auto where) {
    for (; i < places.size() && places[i].in == in; ++i) at[i] = where(places[i].index);
  };
  resolve(Place::In::registers, [&](std::size_t offset) { return registers + offset; });
  resolve(Place::In::constants, [&](std::size_t offset) { return first_constant + offset; });
  resolve(Place::In::inputs,
          [&](std::size_t input) { return const_cast<std::byte*>(operands[input]); });
  resolve(Place::In::results, [&](std::size_t result) { return results[result]; });
  if (!only_block.empty()) {
    for (const SmallCall& call : only_block) {
      const auto [r, a, b, c] = call.places;
      call.function(at[r], at[a], at[b], at[c], call.elements, block);
    }
    return;
  }
  const auto move = [&](std::int64_t by_rows, std::int64_t by_columns) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      at[i] += by_rows * places[i].row_bytes + by_columns * places[i].column_bytes;
    }
  };

  call_all(once, at, block, true);
  if (update != nullptr) {
    std::array<std::byte*, kMostUpdatePlaces> of_update;
    for (std::size_t i = 0; i < update_places.size(); ++i) of_update[i] = at[update_places[i]];
    update(of_update.data(), rows);
    return;
  }
  std::int64_t column = 0;
  do {
    Block part{std::min(block.rows, rows), std::min(block.columns, columns - column)};
    call_all(before_rows, at, part, column == 0);
    for (std::int64_t row = 0; row < rows; row += block.rows) {
      if (row > 0) move(block.rows, 0);
      part.rows = std::min(block.rows, rows - row);
      call_all(on_block, at, part, column == 0);
    }
    call_all(after_rows, at, part, column == 0);
    const std::int64_t moved = rows == 0 ? 0 : (rows - 1) / block.rows * block.rows;
    column += part.columns;
    if (column < columns) move(-moved, part.columns);
  } while (column < columns);
  call_all(at_end, at, block, true);
}

}  // namespace mulgrad::cpu
