#include "backends/cpu/fused.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "backends/cpu/fused_program.h"
#include "core/error.h"

namespace mulgrad::cpu {
namespace {

// Blocks of these many elements; as many of them as all block registers together stay in a
// first-level cache of 32 KiB with room for what streams through.
constexpr std::int64_t kLeastElements = 256;
constexpr std::int64_t kMostElements = 2048;
// The same where a single call works on a block: it leaves nothing in the cache for the next one.
constexpr std::int64_t kMostOfOneCall = 16384;
constexpr std::int64_t kCacheBytes = 20 * 1024;
constexpr std::int64_t kMostRowElements = 2048;
// From this many columns on, a row or column is combined with full values row by row; below it is
// spread over the block first.
constexpr std::int64_t kByRowColumns = 48;

BlockFunction function_of(const FunctionKey& key) {
  const BlockFunction function = arithmetic_function(key);
  return function != nullptr ? function : math_function(key);
}

FunctionKey key_of(const Op& op, DType operand, DType result) {
  FunctionKey key{kind_of(op), Comparison::EQ, operand, result};
  if (const auto* compare = std::get_if<Compare>(&op)) key.direction = compare->direction;
  if (key.kind == OpKind::Convert && operand == result) key.kind = OpKind::StopGradient;
  return key;
}

bool commutes(OpKind kind) {
  return kind == OpKind::Add || kind == OpKind::Multiply || kind == OpKind::Maximum ||
         kind == OpKind::Minimum || kind == OpKind::Compare;
}

// a < b is b > a.
Comparison mirrored(Comparison direction) {
  switch (direction) {
    case Comparison::LT:
      return Comparison::GT;
    case Comparison::LE:
      return Comparison::GE;
    case Comparison::GT:
      return Comparison::LT;
    case Comparison::GE:
      return Comparison::LE;
    case Comparison::EQ:
    case Comparison::NE:
      return direction;
  }
  return direction;
}

const Reduce* reduce_of(const FusedStep& step) { return std::get_if<Reduce>(&step.op); }

void replace_extent(FusedLoop& loop, Extent from, Extent to) {
  for (FusedInput& input : loop.inputs) {
    if (input.extent == from) input.extent = to;
  }
  for (FusedStep& step : loop.steps) {
    if (step.extent == from) step.extent = to;
  }
}

bool has_extent(const FusedLoop& loop, Extent extent) {
  return std::ranges::count(loop.inputs, extent, &FusedInput::extent) > 0 ||
         std::ranges::count(loop.steps, extent, &FusedStep::extent) > 0;
}

bool is_copy(const FusedLoop& loop, const FusedStep& step) {
  if (std::holds_alternative<StopGradient>(step.op)) return true;
  const auto* input = std::get_if<FromInput>(&step.arguments[0]);
  const auto* from = std::get_if<FromStep>(&step.arguments[0]);
  if (!std::holds_alternative<Convert>(step.op) || (input == nullptr && from == nullptr)) {
    return false;
  }
  return step.dtype == (input != nullptr ? loop.inputs[static_cast<std::size_t>(input->index)].dtype
                                         : loop.steps[static_cast<std::size_t>(from->index)].dtype);
}

// Steps read through copies, and steps that nothing needs go.
void remove_copies(FusedLoop& loop) {
  for (FusedStep& step : loop.steps) {
    for (FusedArgument& argument : step.arguments) {
      const auto* from = std::get_if<FromStep>(&argument);
      if (from == nullptr) continue;
      const FusedStep& source = loop.steps[static_cast<std::size_t>(from->index)];
      if (!is_copy(loop, source)) continue;
      // A reduction is of what its argument's extent says.
      if (reduce_of(step) != nullptr && extent_of(loop, source.arguments[0]) != source.extent) {
        continue;
      }
      argument = FusedArgument(source.arguments[0]);
    }
  }
  std::vector<bool> needed(loop.steps.size());
  for (const std::int32_t result : loop.results) needed[static_cast<std::size_t>(result)] = true;
  for (std::size_t i = loop.steps.size(); i-- > 0;) {
    for (const FusedArgument& argument : loop.steps[i].arguments) {
      const auto* from = std::get_if<FromStep>(&argument);
      if (needed[i] && from != nullptr) needed[static_cast<std::size_t>(from->index)] = true;
    }
  }
  if (std::ranges::find(needed, false) == needed.end()) return;
  std::vector<std::int32_t> number(loop.steps.size());
  std::vector<FusedStep> kept;
  for (std::size_t i = 0; i < loop.steps.size(); ++i) {
    if (!needed[i]) continue;
    number[i] = static_cast<std::int32_t>(kept.size());
    FusedStep& step = kept.emplace_back(std::move(loop.steps[i]));
    for (FusedArgument& argument : step.arguments) {
      auto* from = std::get_if<FromStep>(&argument);
      if (from != nullptr) from->index = number[static_cast<std::size_t>(from->index)];
    }
  }
  loop.steps = std::move(kept);
  for (std::int32_t& result : loop.results) result = number[static_cast<std::size_t>(result)];
}

// The same loop with few forms: in a single row, row values are full; in a single column, column
// values are full and row values scalars; where only full and scalar values are left, the space is
// one column.
FusedLoop normalized(FusedLoop loop) {
  if (loop.rows == 1) {
    replace_extent(loop, Extent::row, Extent::full);
    for (FusedStep& step : loop.steps) {
      if (step.extent != Extent::scalar) continue;
      // What was a reduction of a row is one over columns now, and may be read in the loop.
      for (const FusedArgument& argument : step.arguments) {
        if (extent_of(loop, argument) == Extent::column) step.extent = Extent::column;
      }
      if (reduce_of(step) != nullptr) step.extent = Extent::column;
    }
  }
  if (loop.columns == 1) {
    replace_extent(loop, Extent::column, Extent::full);
    replace_extent(loop, Extent::row, Extent::scalar);
  }
  for (FusedStep& step : loop.steps) {
    if (reduce_of(step) == nullptr) continue;
    if (extent_of(loop, step.arguments[0]) == step.extent) step.op = StopGradient{};  // of one
  }
  remove_copies(loop);
  if (!has_extent(loop, Extent::row) && !has_extent(loop, Extent::column)) {
    loop.rows *= loop.columns;
    loop.columns = 1;
  }
  return loop;
}

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

class Planner {
 public:
  explicit Planner(const FusedLoop& loop) : loop_(normalized(loop)) {
    program_.rows = loop_.rows;
    program_.columns = loop_.columns;
  }

  FusedProgram plan() {
    // For a loop of elementwise steps without literals; others need more.
    const std::size_t steps = loop_.steps.size();
    program_.places.reserve(loop_.inputs.size() + steps + loop_.results.size());
    program_.on_block.reserve(steps);
    inputs_.reserve(loop_.inputs.size());
    values_.reserve(steps);
    registers_.reserve(steps);
    for (std::size_t i = 0; i < loop_.inputs.size(); ++i) {
      const auto [dtype, extent] = loop_.inputs[i];
      inputs_.push_back({place(memory(Place::In::inputs, i, dtype, extent)), dtype, extent});
    }
    at_once_ = is_at_once();
    read_.resize(steps);
    for (const FusedStep& step : loop_.steps) {
      for (const FusedArgument& argument : step.arguments) {
        if (const auto* from = std::get_if<FromStep>(&argument)) read_[index(from->index)] = true;
      }
    }
    whole_rows_ = std::ranges::any_of(loop_.steps, [&](const FusedStep& step) {
      return reduce_of(step) != nullptr &&
             (step.extent == Extent::column ||
              (step.extent == Extent::scalar && read_[index(&step - loop_.steps.data())] &&
               extent_of(loop_, step.arguments[0]) == Extent::row));
    });
    if (const auto update = update_of(loop_)) {
      plan_update(*update);
      sort_places();
      return std::move(program_);
    }
    for (const FusedStep& step : loop_.steps) {
      values_.push_back(reduce_of(step) != nullptr ? reduction(step) : elementwise(step));
    }
    for (std::size_t i = 0; i < loop_.results.size(); ++i) store(i);
    place_registers();
    sort_places();
    flatten();
    return std::move(program_);
  }

 private:
  // When a value is made: with the calls of program_.once, before_rows or on_block, or behind the
  // loop in after_rows or at_end; or it is an accumulator, to be finished there.
  enum class Stage : std::uint8_t { once, before_rows, on_block, behind, accumulated };
  struct Value {
    std::uint16_t place;
    DType dtype;
    Extent extent;
    Stage stage = Stage::once;
    std::optional<DType> accumulator = std::nullopt;  // of what is accumulated: its dtype
  };
  // A block register: a place in scratch memory, which gets its offset when all are known.
  struct Register {
    std::size_t place;
    std::int64_t element_bytes;
    Extent extent;
    bool kept = false;  // through the whole run
  };

  static std::size_t index(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }

  std::uint16_t place(Place place) {
    program_.places.push_back(place);
    INTERNAL_CHECK(program_.places.size() < 65536);
    return static_cast<std::uint16_t>(program_.places.size() - 1);
  }

  Place memory(Place::In in, std::size_t number, DType dtype, Extent extent) const {
    const std::int64_t bytes = byte_size(dtype);
    const bool by_row = extent == Extent::full || extent == Extent::column;
    const bool by_column = extent == Extent::full || extent == Extent::row;
    return {in, number,
            !by_row     ? 0
            : by_column ? bytes * loop_.columns
                        : bytes,
            by_column ? bytes : 0};
  }

  std::uint16_t new_register(DType dtype, Extent extent, bool kept) {
    const std::uint16_t result = place({Place::In::registers, 0});
    registers_.push_back({result, byte_size(dtype), extent, kept});
    return result;
  }

  Value value_of(const FusedArgument& argument) {
    if (const auto* input = std::get_if<FromInput>(&argument)) return inputs_[index(input->index)];
    if (const auto* step = std::get_if<FromStep>(&argument)) return values_[index(step->index)];
    return constant(std::get<Literal>(argument));
  }

  Value constant(const Literal& literal) {
    const auto found = std::ranges::find(program_.constants, literal.bits);
    const auto number = index(found - program_.constants.begin());
    if (found == program_.constants.end()) program_.constants.push_back(literal.bits);
    return {place({Place::In::constants, number * sizeof(literal.bits)}), literal.dtype,
            Extent::scalar};
  }

  std::vector<BlockCall>& calls(Stage stage, Extent extent) {
    if (stage == Stage::behind) {
      return extent == Extent::row ? program_.after_rows : program_.at_end;
    }
    return stage == Stage::once          ? program_.once
           : stage == Stage::before_rows ? program_.before_rows
                                         : program_.on_block;
  }

  // `exact` is the function for a result of the loop, where `function` writes behind its end.
  BlockCall& call(std::vector<BlockCall>& calls, BlockFunction function, Extent extent,
                  std::uint16_t result, std::span<const Value> operands,
                  BlockFunction exact = nullptr) {
    if (exact != nullptr) {
      exact_.resize(program_.places.size(), nullptr);
      exact_[result] = exact;
    }
    BlockCall made{function, {result, result, result, result}, extent};
    for (std::size_t i = 0; i < operands.size(); ++i) made.places[i + 1] = operands[i].place;
    return calls.emplace_back(made);
  }

  // A value for every element of `extent`, which x does not have.
  Value spread(const Value& x, Extent extent) {
    const auto [found, is_new] = spreads_.try_emplace({x.place, extent});
    if (!is_new) return found->second;
    const Stage stage = x.extent == Extent::column ? Stage::on_block : Stage::before_rows;
    const Spread form = x.extent == Extent::scalar ? Spread::scalar
                        : x.extent == Extent::row  ? Spread::row
                                                   : Spread::column;
    Value made{new_register(x.dtype, extent, stage == Stage::before_rows), x.dtype, extent, stage};
    call(calls(stage, extent), spread_function(index(byte_size(x.dtype)), form), extent, made.place,
         std::span(&x, 1));
    found->second = made;
    return made;
  }

  Value elementwise(const FusedStep& step) {
    ShortList<Value, 3> x;
    for (const FusedArgument& argument : step.arguments) {
      x.push_back(finished(value_of(argument)));
    }
    FunctionKey key = key_of(step.op, x.back().dtype, step.dtype);
    const Extent extent = step.extent;

    // Of a single row, a column is a number.
    const auto is_partial = [&](const Value& v) {
      return extent == Extent::full &&
             (v.extent == Extent::row || (v.extent == Extent::column && loop_.rows != 1));
    };
    const bool any_partial = std::ranges::any_of(x, is_partial);
    const RowLength length = has_whole_rows()
                                 ? row_length(index(byte_size(x.back().dtype)), loop_.columns)
                                 : RowLength::other;
    const bool by_row = any_partial && length == RowLength::other && loop_.columns >= kByRowColumns;
    const auto form_of = [&](const Value& v) {
      if (extent == Extent::scalar || v.extent == extent) return Form::vector;
      if (!is_partial(v)) return Form::scalar;
      const bool row = v.extent == Extent::row;
      if (by_row) return row ? Form::vector : Form::scalar;
      if (length == RowLength::part_of_vector) return row ? Form::short_row : Form::short_column;
      return row ? Form::long_row : Form::long_column;
    };
    if (length == RowLength::other && !by_row) {
      for (Value& v : x) {
        if (is_partial(v)) v = spread(v, extent);
      }
    }
    for (;;) {
      for (std::size_t i = 0; i < x.size(); ++i) key.forms[i] = form_of(x[i]);
      if (commutes(key.kind) && key.forms[0] != Form::vector && key.forms[1] == Form::vector) {
        std::swap(x[0], x[1]);
        std::swap(key.forms[0], key.forms[1]);
        key.direction = mirrored(key.direction);
      }
      if (function_of(key) != nullptr) break;
      const auto other =
          std::ranges::find_if(x, [&](const Value& v) { return form_of(v) != Form::vector; });
      INTERNAL_CHECK(other != x.end());  // else there is no such op
      *other = spread(*other, extent);
    }

    Stage stage = extent == Extent::scalar ? Stage::once
                  : extent == Extent::row  ? Stage::before_rows
                                           : Stage::on_block;
    for (const Value& v : x) stage = std::max(stage, v.stage);
    INTERNAL_CHECK(stage != Stage::accumulated && (stage != Stage::behind || !by_row));
    const std::uint16_t result = new_register(step.dtype, extent, stage != Stage::on_block);
    const BlockFunction exact = function_of(key);
    key.tail = Tail::whole;
    BlockCall& made = call(calls(stage, extent), function_of(key), extent, result, x, exact);
    if (by_row) {
      // Behind a row lies the next one, of which an operand may be read yet.
      made.function = exact;
      made.by_row = true;
      const auto stride = [&](DType dtype, Extent of) -> std::int64_t {
        if (of == Extent::row || of == Extent::scalar) return 0;
        return byte_size(dtype) * (of == Extent::full ? loop_.columns : 1);
      };
      made.strides[0] = stride(step.dtype, extent);
      for (std::size_t i = 0; i < x.size(); ++i) {
        made.strides[i + 1] = stride(x[i].dtype, x[i].extent);
      }
    }
    return {result, step.dtype, extent, stage};
  }

  // An accumulator's value, behind the loop.
  Value finished(const Value& x) {
    if (x.stage != Stage::accumulated) return x;
    const auto [found, is_new] = finished_.try_emplace(x.place);
    if (is_new) {
      found->second = {new_register(x.dtype, x.extent, true), x.dtype, x.extent, Stage::behind};
      finish(calls(Stage::behind, x.extent), x, found->second.place);
    }
    return found->second;
  }

  Value reduction(const FusedStep& step) {
    const Reduction kind = reduce_of(step)->kind;
    const Value x = value_of(step.arguments[0]);
    if (step.extent == Extent::column) {
      const std::uint16_t result = new_register(step.dtype, Extent::column, false);
      const auto function = [&](Tail tail) {
        return reduction_function(kind, x.dtype, Reducing::columns_away, tail);
      };
      call(program_.on_block, function(Tail::whole), Extent::column, result, std::span(&x, 1),
           function(Tail::exact));
      return {result, step.dtype, Extent::column, Stage::on_block};
    }
    if (x.stage == Stage::on_block && at_once_) {
      const std::uint16_t result = new_register(step.dtype, step.extent, false);
      const bool rows_away = step.extent == Extent::row;
      const BlockFunction function = reduction_function(
          kind, x.dtype, rows_away ? Reducing::rows_at_once : Reducing::all_at_once, Tail::exact);
      call(program_.on_block, function, x.extent, result, std::span(&x, 1), function);
      return {result, step.dtype, step.extent, Stage::on_block};
    }
    const DType stored = accumulator_of(kind, x.dtype);
    Value total{new_register(stored, step.extent, true), step.dtype, step.extent,
                Stage::accumulated, stored};
    const bool over_rows = step.extent == Extent::row;
    const Value start =
        constant(start_of(kind, stored, over_rows ? loop_.rows : elements(x.extent)));
    // Written by a spread, and so the accumulators of a row are whole vectors.
    call(over_rows ? program_.before_rows : program_.once,
         spread_function(index(byte_size(stored)), Spread::scalar), step.extent, total.place,
         std::span(&start, 1));
    const Stage stage = x.extent == Extent::row ? Stage::before_rows : Stage::on_block;
    call(calls(stage, x.extent),
         reduction_function(kind, x.dtype, over_rows ? Reducing::rows_away : Reducing::all,
                            Tail::exact),
         x.extent, total.place, std::span(&x, 1));
    calls(stage, x.extent).back().first_columns_only = x.extent == Extent::column;
    if (stage != Stage::before_rows || !whole_rows_) return total;
    // All of the row is there: later steps may read its reduction.
    const Value finished{new_register(step.dtype, step.extent, true), step.dtype, step.extent,
                         Stage::before_rows};
    finish(program_.before_rows, total, finished.place);
    return finished;
  }

  // Whether reductions to rows and numbers need no accumulators: the space surely is one block, and
  // has elements, and no result of theirs may lie over a full input, which is still read then. For
  // all or none of them: where one has an accumulator, what it is read by comes behind the loop.
  bool is_at_once() const {
    const std::int64_t all = loop_.rows * loop_.columns;
    if (all <= 0 || all > kLeastElements) return false;
    return std::ranges::none_of(loop_.steps, [&](const FusedStep& step) {
      const bool is_small = step.extent == Extent::row || step.extent == Extent::scalar;
      return reduce_of(step) != nullptr && is_small &&
             std::ranges::any_of(inputs_, [&](const Value& input) {
               return input.extent == Extent::full &&
                      bytes_of(input) == byte_size(step.dtype) * elements(step.extent);
             });
    });
  }
  std::int64_t bytes_of(const Value& x) const { return byte_size(x.dtype) * elements(x.extent); }

  std::int64_t elements(Extent extent) const {
    return (extent == Extent::row || extent == Extent::scalar ? 1 : loop_.rows) *
           (extent == Extent::column || extent == Extent::scalar ? 1 : loop_.columns);
  }

  // A sum starts from -0, which changes no term, -0 included; over nothing it is +0.
  static Literal start_of(Reduction kind, DType stored, std::int64_t terms) {
    if (kind != Reduction::sum) return Literal::infinity(stored, kind == Reduction::max);
    return Literal::from_double(stored, terms == 0 ? 0.0 : -0.0);
  }

  void finish(std::vector<BlockCall>& calls, const Value& total, std::uint16_t to) {
    const DType from = total.accumulator.value_or(total.dtype);
    const FunctionKey key = key_of(Convert{total.dtype}, from, total.dtype);
    call(calls, function_of(key), total.extent, to, std::span(&total, 1));
  }

  void store(std::size_t result) {
    const Value& x = values_[index(loop_.results[result])];
    const Place to = memory(Place::In::results, result, x.dtype, x.extent);
    if (x.stage == Stage::behind) {
      call(calls(x.stage, x.extent), function_of({OpKind::StopGradient, {}, x.dtype, x.dtype}),
           x.extent, place(to), std::span(&x, 1));
      return;
    }
    const bool is_small = x.extent == Extent::row || x.extent == Extent::scalar;
    if (is_small && x.stage != Stage::on_block) {
      finish(x.extent == Extent::row ? program_.after_rows : program_.at_end, x, place(to));
      return;
    }
    // The result may lie over an input that has as many bytes, so it is written at once only where
    // no later call reads such an input.
    const auto reads_such_input = [&](const BlockCall& call) {
      return std::ranges::any_of(call.places, [&](std::uint16_t i) {
        const Place& operand = program_.places[i];
        if (operand.in != Place::In::inputs) return false;
        return bytes_of(inputs_[operand.index]) == bytes_of(x);
      });
    };
    std::vector<BlockCall>& calls = program_.on_block;
    Place& now = program_.places[x.place];
    const auto made =
        std::ranges::find(calls, x.place, [](const BlockCall& c) { return c.places[0]; });
    const bool is_read_later = now.in != Place::In::registers || made == calls.end() ||
                               std::any_of(made + 1, calls.end(), reads_such_input);
    if (is_read_later) {
      call(calls, function_of({OpKind::StopGradient, {}, x.dtype, x.dtype}), x.extent, place(to),
           std::span(&x, 1));
    } else {
      now = to;
      made->function = exact_.at(x.place);
    }
  }

  void plan_update(const Update& update) {
    for (const FusedStep& step : loop_.steps) {
      values_.push_back(step.extent == Extent::scalar ? elementwise(step)
                                                      : Value{0, step.dtype, step.extent});
    }
    program_.update = update.function;
    for (const std::int32_t step : update.results) {
      const std::size_t number =
          index(std::ranges::find(loop_.results, step) - loop_.results.begin());
      program_.update_places.push_back(
          place(memory(Place::In::results, number, loop_.steps[index(step)].dtype, Extent::full)));
    }
    for (const FusedArgument& argument : update.arguments) {
      program_.update_places.push_back(value_of(argument).place);
    }
    INTERNAL_CHECK(program_.update_places.size() <= kMostUpdatePlaces);
    place_registers();
  }

  // Gives registers that are not needed at one time the same memory, then sizes the block.
  void place_registers() {
    struct Slot {
      std::int64_t element_bytes;
      Extent extent;
      std::int64_t offset = 0;
    };
    struct Use {
      const Register* waiting = nullptr;
      std::size_t slot = 0;
      std::size_t last_call = 0;
      bool is_freed = false;
    };
    std::vector<Slot> slots;
    std::vector<Use> uses(program_.places.size());
    slots.reserve(registers_.size());
    for (const Register& r : registers_) {
      if (program_.places[r.place].in != Place::In::registers) continue;  // a result by now
      if (r.kept) {
        uses[r.place].slot = slots.size();
        slots.push_back({r.element_bytes, r.extent});
      } else {
        uses[r.place].waiting = &r;
      }
    }
    const std::vector<BlockCall>& calls = program_.on_block;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (const std::uint16_t p : calls[i].places) uses[p].last_call = i;
    }
    std::vector<std::size_t> free;  // slots; those freed last are taken first
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::uint16_t result = calls[i].places[0];
      // A function may write over what it reads for the last time.
      for (const std::uint16_t p : std::span(calls[i].places).subspan(1)) {
        Use& use = uses[p];
        if (p == result || use.waiting == nullptr || use.last_call != i || use.is_freed) continue;
        use.is_freed = true;
        free.push_back(use.slot);
      }
      const Register* const made = uses[result].waiting;
      if (made == nullptr) continue;
      const auto fitting = std::find_if(free.rbegin(), free.rend(), [&](std::size_t slot) {
        return slots[slot].element_bytes == made->element_bytes &&
               slots[slot].extent == made->extent;
      });
      if (fitting == free.rend()) {
        uses[result].slot = slots.size();
        slots.push_back({made->element_bytes, made->extent});
      } else {
        uses[result].slot = *fitting;
        free.erase(std::next(fitting).base());
      }
    }

    std::int64_t full_bytes = 1;
    for (const Slot& slot : slots) {
      if (slot.extent == Extent::full) full_bytes += slot.element_bytes;
    }
    const std::int64_t most = calls.size() == 1 ? kMostOfOneCall : kMostElements;
    program_.block = block_of(std::clamp(kCacheBytes / full_bytes / 64 * 64, kLeastElements, most));
    const Block& block = program_.block;
    const std::int64_t counts[] = {block.rows * block.columns, block.columns, block.rows, 1};
    std::int64_t offset = 0;
    for (Slot& slot : slots) {
      slot.offset = offset;
      const std::int64_t bytes = slot.element_bytes * counts[static_cast<int>(slot.extent)];
      offset += rounded_up(bytes + static_cast<std::int64_t>(kOverrun));
    }
    program_.scratch_bytes = index(offset);
    for (const Register& r : registers_) {
      Place& now = program_.places[r.place];
      if (now.in == Place::In::registers) now.index = index(slots[uses[r.place].slot].offset);
    }
  }

  // Each once and by kind, so that a run finds the pointers of each kind in a row.
  void sort_places() {
    std::vector<std::uint16_t> order(program_.places.size());
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    std::ranges::sort(order, {}, [&](std::uint16_t i) {
      return std::tuple(program_.places[i].in, program_.places[i].index, i);
    });
    std::vector<std::uint16_t> number(order.size());
    std::vector<Place> sorted;
    sorted.reserve(order.size());
    for (const std::uint16_t i : order) {
      const Place& place = program_.places[i];
      if (sorted.empty() || place.in != sorted.back().in || place.index != sorted.back().index) {
        sorted.push_back(place);
      }
      number[i] = static_cast<std::uint16_t>(sorted.size() - 1);
    }
    program_.places = std::move(sorted);
    for (auto* calls : {&program_.once, &program_.before_rows, &program_.on_block,
                        &program_.after_rows, &program_.at_end}) {
      for (BlockCall& call : *calls) {
        for (std::uint16_t& i : call.places) i = number[i];
      }
    }
    for (std::uint16_t& i : program_.update_places) i = number[i];
  }

  void flatten() {
    const Block& block = program_.block;
    if (block.rows != loop_.rows || block.columns != loop_.columns) return;
    const std::int64_t counts[] = {block.rows * block.columns, block.columns, block.rows, 1};
    std::vector<FusedProgram::SmallCall> flat;
    flat.reserve(program_.on_block.size());
    for (const auto* calls : {&program_.once, &program_.before_rows, &program_.on_block,
                              &program_.after_rows, &program_.at_end}) {
      for (const BlockCall& call : *calls) {
        if (call.by_row) return;
        flat.push_back({call.function, call.places, counts[static_cast<int>(call.extent)]});
      }
    }
    program_.only_block = std::move(flat);
    for (auto* calls : {&program_.once, &program_.before_rows, &program_.on_block,
                        &program_.after_rows, &program_.at_end}) {
      *calls = {};  // run() needs them no more
    }
  }

  bool has_whole_rows() const { return whole_rows_ || loop_.columns <= kMostElements; }

  // About `elements`: whole rows, evenly spread, or a part of a row.
  Block block_of(std::int64_t elements) const {
    if (!has_whole_rows()) return {1, std::min(elements, kMostElements)};
    const std::int64_t most =
        std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, loop_.columns));
    if (loop_.rows <= most) return {std::max<std::int64_t>(1, loop_.rows), loop_.columns};
    const std::int64_t blocks = (loop_.rows + most - 1) / most;
    return {(loop_.rows + blocks - 1) / blocks, loop_.columns};
  }

  FusedLoop loop_;
  FusedProgram program_;
  std::vector<Value> inputs_;
  std::vector<Value> values_;  // of the steps
  std::vector<bool> read_;     // by step: whether a later step reads it
  bool at_once_ = false;       // as is_at_once()
  bool whole_rows_ = false;    // whether a block must hold whole rows
  std::vector<Register> registers_;
  std::map<std::pair<std::uint16_t, Extent>, Value> spreads_;
  std::map<std::uint16_t, Value> finished_;  // of accumulators
  std::vector<BlockFunction> exact_;         // by the place of the result
};

std::string_view short_name(const Op& op) {
  if (const auto* reduce = std::get_if<Reduce>(&op)) {
    return reduce->kind == Reduction::sum   ? "reduce_sum"
           : reduce->kind == Reduction::max ? "reduce_max"
                                            : "reduce_min";
  }
  const std::string_view name = info(op).text_name;
  return name.substr(name.find('.') + 1);
}

}  // namespace

Extent extent_of(const FusedLoop& loop, const FusedArgument& argument) {
  if (const auto* input = std::get_if<FromInput>(&argument)) {
    return loop.inputs[static_cast<std::size_t>(input->index)].extent;
  }
  if (const auto* step = std::get_if<FromStep>(&argument)) {
    return loop.steps[static_cast<std::size_t>(step->index)].extent;
  }
  return Extent::scalar;
}

bool can_fuse(const Op& op, std::span<const DType> operands, DType result) {
  if (operands.empty()) return false;
  if (const auto* reduce = std::get_if<Reduce>(&op)) {
    return reduction_function(reduce->kind, operands[0], Reducing::all, Tail::exact) != nullptr;
  }
  return is_elementwise(op) && function_of(key_of(op, operands.back(), result)) != nullptr;
}

std::int64_t max_fused_columns() { return kMostRowElements; }

Kernel fused_kernel(const FusedLoop& loop) {
  const auto program = std::make_shared<const FusedProgram>(Planner(loop).plan());
  return [program](std::span<std::byte* const> results,
                   std::span<const std::byte* const> operands) { program->run(results, operands); };
}

std::string fused_name(const FusedLoop& loop) {
  const DType dtype = loop.results.empty()
                          ? DType::f32
                          : loop.steps[static_cast<std::size_t>(loop.results[0])].dtype;
  std::string name = "fused_" + std::string(to_string(dtype)) + " " + std::to_string(loop.rows) +
                     "x" + std::to_string(loop.columns) + " (";
  for (std::size_t i = 0; i < loop.steps.size(); ++i) {
    if (i > 0) name += " ";
    name += short_name(loop.steps[i].op);
  }
  return name + ")";
}

}  // namespace mulgrad::cpu
