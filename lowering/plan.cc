#include "lowering/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "core/lists.h"

namespace mulgrad {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + AlignedBytes::kAlignment - 1) / AlignedBytes::kAlignment *
         AlignedBytes::kAlignment;
}

using ArenaBlock = PlanBuilder::Block;

// Hands out offsets, the smallest gap that fits first; grows at the end.
class Space {
 public:
  std::size_t take(std::size_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      const std::size_t offset = end_;
      end_ += bytes;
      return offset;
    }
    const auto [size, offset] = *best;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }
  void give_back(std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      const std::size_t size = next->second;
      bytes += size;
      remove(next->first, size);
    }
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }
  std::size_t end() const { return end_; }

 private:
  void insert(std::size_t offset, std::size_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::size_t offset, std::size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::size_t, std::size_t> by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t end_ = 0;
};

// The blocks that end with each call; those that outlive all calls are in none.
Lists<std::int32_t> ends_by_call(std::span<const ArenaBlock> blocks, std::size_t calls) {
  return numbers_by_list(calls, blocks.size(), [&](std::size_t block) {
    return static_cast<std::size_t>(blocks[block].last);
  });
}

std::size_t most_live(std::span<const ArenaBlock> blocks, const Lists<std::int32_t>& ends) {
  std::size_t live = 0;
  std::size_t most = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (; next < blocks.size() && blocks[next].first == static_cast<std::int64_t>(i); ++next) {
      live += blocks[next].bytes;
    }
    most = std::max(most, live);
    for (const std::int32_t block : ends[i]) live -= blocks[static_cast<std::size_t>(block)].bytes;
  }
  return most;
}

// In the order in which they are needed, each into the smallest gap that there is then.
std::size_t place_in_order(std::span<ArenaBlock> blocks, const Lists<std::int32_t>& ends) {
  Space space;
  std::size_t next = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (; next < blocks.size() && blocks[next].first == static_cast<std::int64_t>(i); ++next) {
      blocks[next].offset = space.take(blocks[next].bytes);
    }
    for (const std::int32_t number : ends[i]) {
      const ArenaBlock& block = blocks[static_cast<std::size_t>(number)];
      space.give_back(block.offset, block.bytes);
    }
  }
  return space.end();
}

// In the given order, each as far down as those placed before it allow.
std::size_t place_one_by_one(std::span<ArenaBlock* const> order) {
  std::vector<const ArenaBlock*> placed;  // by offset
  std::size_t end = 0;
  for (ArenaBlock* block : order) {
    std::size_t offset = 0;
    for (const ArenaBlock* other : placed) {
      if (other->last < block->first || block->last < other->first) continue;
      if (offset + block->bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    block->offset = offset;
    end = std::max(end, offset + block->bytes);
    placed.insert(
        std::ranges::upper_bound(placed, offset, {}, [](const ArenaBlock* b) { return b->offset; }),
        block);
  }
  return end;
}

void move_element(std::vector<ArenaBlock*>& order, std::ptrdiff_t from, std::ptrdiff_t to) {
  const auto begin = order.begin();
  if (from < to) {
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  } else {
    std::rotate(begin + to, begin + from, begin + from + 1);
  }
}

// The largest first; then a block at a time is moved to another place in that order, and back where
// that makes the end higher, until all need little more than `least`. Leaves the best placement and
// returns its end. The moves are the same in every run.
std::size_t place_by_size(std::vector<ArenaBlock>& blocks, std::size_t least) {
  constexpr std::size_t kMostWork = 1 << 22;
  std::vector<ArenaBlock> trial = blocks;
  std::vector<ArenaBlock*> order;
  for (ArenaBlock& block : trial) order.push_back(&block);
  std::ranges::stable_sort(order, std::greater<>(), [](const ArenaBlock* b) { return b->bytes; });
  std::size_t best = place_one_by_one(order);
  blocks = trial;
  std::minstd_rand random;
  const auto any = [&] { return static_cast<std::ptrdiff_t>(random() % order.size()); };
  for (std::size_t work = 0; best > least + least / 64 && work < kMostWork;
       work += blocks.size() * blocks.size()) {
    const std::ptrdiff_t from = any();
    const std::ptrdiff_t to = any();
    move_element(order, from, to);
    const std::size_t end = place_one_by_one(order);
    if (end > best) {
      move_element(order, to, from);
      continue;
    }
    best = end;
    blocks = trial;
  }
  return best;
}

}  // namespace

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  INTERNAL_CHECK(from.size() == to.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

AlignedBytes::AlignedBytes(std::size_t size)
    : data_(static_cast<std::byte*>(::operator new[](size, std::align_val_t{kAlignment}))),
      size_(size) {
  std::memset(data_.get(), 0, size);
}

void Plan::run(std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const Call& call = calls_[i];
    call.kernel({results_.data() + call.first_result, call.result_count},
                {operands_.data() + call.first_operand, call.operand_count});
  }
}

void Plan::run_to_checkpoint() { run(0, checkpoint_); }

void Plan::run_from_checkpoint() {
  run(checkpoint_, calls_.size());
  for (const Copy& copy : commits_) copy_bytes(copy.from, copy.to);
}

std::span<std::byte> Plan::input(std::size_t index) { return inputs_[index].memory; }
std::span<const std::byte> Plan::output(std::size_t index) const { return outputs_[index]; }

void Plan::rebind(Input& input, const std::byte* data) {
  input.bound_at = data;
  for (const std::size_t operand : input.operands) operands_[operand] = data;
  for (const std::size_t output : input.outputs) {
    outputs_[output] = {data, outputs_[output].size()};
  }
}

std::string Plan::print() const {
  const std::span<std::byte> arena = arena_.bytes();
  std::map<std::size_t, std::string> bound;  // by the place in operands_
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (const std::size_t operand : inputs_[i].operands) bound[operand] = "in" + std::to_string(i);
  }
  std::map<const std::byte*, std::string> external;
  const auto place = [&](const std::byte* data) {
    const std::less<> before;
    if (!before(data, arena.data()) && before(data, arena.data() + arena.size())) {
      return "@" + std::to_string(data - arena.data());
    }
    return external.emplace(data, "ext" + std::to_string(external.size())).first->second;
  };
  // The columns: number, operations, bytes, the rest.
  std::vector<std::array<std::string, 4>> lines;
  std::array<std::size_t, 3> widths{};
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    std::string kernel = call.name + " (";
    for (std::size_t k = call.first_operand; k < call.first_operand + call.operand_count; ++k) {
      const auto input = bound.find(k);
      kernel += (k > call.first_operand ? ", " : "") +
                (input != bound.end() ? input->second : place(operands_[k]));
    }
    kernel += ") -> ";
    for (std::size_t k = call.first_result; k < call.first_result + call.result_count; ++k) {
      kernel += (k > call.first_result ? ", " : "") + place(results_[k]);
    }
    lines.push_back({std::to_string(i), call.flops > 0 ? std::to_string(call.flops) + " flop" : "",
                     std::to_string(call.bytes) + " B", std::move(kernel)});
    for (std::size_t k = 0; k < widths.size(); ++k) {
      widths[k] = std::max(widths[k], lines.back()[k].size());
    }
  }
  std::string text = "plan: " + std::to_string(kernels()) + " kernels, " +
                     std::to_string(fallbacks()) + " fallbacks, arena " +
                     std::to_string(arena_bytes()) + " bytes, temporaries " +
                     std::to_string(live_bytes()) + " bytes at most\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 && i == checkpoint_) text += "  checkpoint\n";
    for (std::size_t k = 0; k < widths.size(); ++k) {
      text += "  " + std::string(widths[k] - lines[i][k].size(), ' ') + lines[i][k];
    }
    text += "  " + lines[i].back() + "\n";
  }
  return text;
}

Buffer PlanBuilder::add(Entry entry) {
  entries_.push_back(entry);
  return {static_cast<std::int32_t>(entries_.size() - 1)};
}

Buffer PlanBuilder::input(std::size_t bytes) {
  const Buffer buffer = add({Kind::input, bytes});
  inputs_.push_back(buffer);
  return buffer;
}

Buffer PlanBuilder::bound_input(std::size_t bytes) {
  const Buffer buffer = add({Kind::bound, bytes});
  inputs_.push_back(buffer);
  return buffer;
}

Buffer PlanBuilder::external(std::span<std::byte> memory) {
  return add({Kind::external, memory.size(), memory});
}

Buffer PlanBuilder::constant(Tensor value) {
  const Buffer buffer = add({Kind::constant, value.bytes().size()});
  constants_.push_back(std::move(value));
  return buffer;
}

CallResults PlanBuilder::call(KernelCall call) {
  const std::int64_t index = last_call() + 1;
  for (const Buffer operand : call.operands) entry(operand).last_use = index;
  const CallResults results(static_cast<std::int32_t>(entries_.size()), call.results.size());
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const KernelResult& made = call.results[i];
    if (made.changes) {
      INTERNAL_CHECK(entry(*made.changes).bytes == made.bytes);
      entry(*made.changes).last_use = index;
    }
    Entry result{Kind::temporary, made.bytes};
    result.producer = index;
    result.result = static_cast<std::int32_t>(i);
    result.last_use = index;
    add(result);
  }
  results_.push_back(results);
  calls_.push_back(std::move(call));
  return results;
}

void PlanBuilder::reserve(std::size_t calls) {
  calls_.reserve(calls);
  results_.reserve(calls);
  entries_.reserve(entries_.size() + calls);
}

void PlanBuilder::output(Buffer value) {
  entry(value).last_use = kForever;
  outputs_.push_back(value);
}

void PlanBuilder::commit(Buffer value, Buffer external) {
  INTERNAL_CHECK(entry(external).kind == Kind::external);
  INTERNAL_CHECK(entry(value).bytes == entry(external).bytes);
  if (value.index == external.index) return;
  if (entry(value).kind == Kind::external || entry(value).kind == Kind::bound) {
    // Another commit may write that memory before this one reads it, and no copy at the end knows
    // where a bound input is.
    const std::size_t bytes = entry(value).bytes;
    value = call(
        {"copy",
         {value},
         [bytes](std::span<std::byte* const> results, std::span<const std::byte* const> operands) {
           if (bytes > 0) std::memcpy(results[0], operands[0], bytes);
         },
         {{bytes}}})[0];
  }
  commits_.push_back({value, external});
}

void PlanBuilder::checkpoint(Buffer value) {
  checkpoint_ = std::max(checkpoint_.value_or(-1), entry(value).producer);
}

// Whether the call that makes `value` may write it over `target`, the last use of which it is.
bool PlanBuilder::may_lie_over(const Entry& value, Buffer target) const {
  const KernelCall& call = calls_[static_cast<std::size_t>(value.producer)];
  const auto result = static_cast<std::size_t>(value.result);
  const KernelResult& made = call.results[result];
  // Every reading of the target by this call must allow it.
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const std::optional<Buffer>& changed = call.results[i].changes;
    if (changed && changed->index == target.index && i != result) return false;
  }
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (call.operands[i].index != target.index) continue;
    if (made.changes) return false;
    const auto& allowed = made.may_overlay;
    if (std::ranges::count(allowed, static_cast<std::int32_t>(i)) == 0) return false;
  }
  return !made.changes || made.changes->index == target.index;
}

// A committed value is computed in its external memory when the kernel that makes it is behind the
// checkpoint and the last to read the old content, if it reads it at all, then in place.
void PlanBuilder::place_commits() {
  std::set<std::int32_t> placed;
  for (Commit& commit : commits_) {
    Entry& value = entry(commit.value);
    const Entry& target = entry(commit.external);
    if (value.kind == Kind::temporary && value.producer > checkpoint_.value_or(-1)) {
      const bool free = target.last_use < value.producer ||
                        (target.last_use == value.producer && may_lie_over(value, commit.external));
      if (free && placed.insert(commit.value.index).second) {
        value.memory = target.memory;
        commit.in_place = true;
        continue;
      }
    }
    value.last_use = kForever;
  }
}

// A kernel that changes a value gets a copy of it, as one more operand, unless it is the last use
// of a temporary or of external memory in which the result is to lie.
void PlanBuilder::copy_what_is_still_read() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    KernelCall& call = calls_[i];
    for (std::size_t k = 0; k < call.results.size(); ++k) {
      std::optional<Buffer>& changes = call.results[k].changes;
      if (!changes) continue;
      const Entry& old = entry(*changes);
      const Entry& result = entry(results_[i][k]);
      const bool is_last =
          old.last_use == static_cast<std::int64_t>(i) && may_lie_over(result, *changes);
      const bool in_external =
          old.kind == Kind::external && result.memory.data() == old.memory.data();
      const bool over_temporary = old.kind == Kind::temporary && old.memory.data() == nullptr &&
                                  result.memory.data() == nullptr;
      if (is_last && (in_external || over_temporary)) continue;
      call.kernel = [kernel = std::move(call.kernel), k, bytes = old.bytes](
                        std::span<std::byte* const> results,
                        std::span<const std::byte* const> operands) {
        if (bytes > 0) std::memcpy(results[k], operands.back(), bytes);
        kernel(results, operands.first(operands.size() - 1));
      };
      call.name += " after a copy";
      call.operands.push_back(*changes);
      changes.reset();
    }
  }
}

// Blocks for the temporaries; results that take over a dying operand share its block.
std::vector<PlanBuilder::Block> PlanBuilder::make_blocks() {
  std::vector<Block> blocks;
  const auto own = [&](Buffer buffer) { return entry(buffer).memory.data() == nullptr; };
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const auto now = static_cast<std::int64_t>(i);
    const KernelCall& call = calls_[i];
    for (std::size_t k = 0; k < results_[i].size(); ++k) {
      if (!own(results_[i][k])) continue;
      Entry& result = entry(results_[i][k]);
      const KernelResult& made = call.results[k];
      std::int32_t block = made.changes ? entry(*made.changes).block : -1;
      for (const std::int32_t operand : made.may_overlay) {
        const Buffer over = call.operands[static_cast<std::size_t>(operand)];
        const Entry& dying = entry(over);
        // A block that another result of this call took over lives on.
        const bool dies = dying.kind == Kind::temporary && own(over) && dying.last_use == now &&
                          dying.producer < now &&
                          blocks[static_cast<std::size_t>(dying.block)].last == now;
        if (block < 0 && dies && dying.bytes == result.bytes && may_lie_over(result, over)) {
          block = dying.block;
        }
      }
      if (block < 0) {
        block = static_cast<std::int32_t>(blocks.size());
        blocks.push_back({aligned(result.bytes), now, now, 0});
      }
      result.block = block;
      Block& taken = blocks[static_cast<std::size_t>(block)];
      // A result that nothing reads lives as long as the call; so that no other takes the block
      // over, it counts as living on where the block is shared.
      taken.last = std::max(result.last_use, taken.first == now ? now : now + 1);
    }
  }
  return blocks;
}

// Returns the end of the arena.
std::size_t PlanBuilder::place_temporaries(std::size_t base, std::size_t& live_bytes) {
  // Beyond this many blocks the better packing, which compares each with each, takes too long.
  constexpr std::size_t kMostPacked = 2048;
  std::vector<Block> blocks = make_blocks();
  const Lists<std::int32_t> ends = ends_by_call(blocks, calls_.size());
  live_bytes = most_live(blocks, ends);
  std::size_t end = place_in_order(blocks, ends);
  if (end > live_bytes && blocks.size() <= kMostPacked) {
    std::vector<Block> packed = blocks;
    const std::size_t packed_end = place_by_size(packed, live_bytes);
    if (packed_end < end) {
      end = packed_end;
      blocks = std::move(packed);
    }
  }
  for (Entry& entry : entries_) {
    if (entry.block >= 0) {
      entry.offset = base + blocks[static_cast<std::size_t>(entry.block)].offset;
    }
  }
  return base + end;
}

Plan PlanBuilder::finish() {
  Plan plan;
  place_commits();
  copy_what_is_still_read();
  std::size_t base = 0;
  for (Entry& entry : entries_) {
    if (entry.kind != Kind::input && entry.kind != Kind::constant) continue;
    entry.offset = base;
    base += aligned(entry.bytes);
  }
  plan.arena_ = AlignedBytes(place_temporaries(base, plan.live_bytes_));
  const std::span<std::byte> arena = plan.arena_.bytes();
  for (Entry& entry : entries_) {
    const bool in_arena = entry.kind != Kind::external && entry.kind != Kind::bound;
    if (in_arena && entry.memory.data() == nullptr) {
      entry.memory = arena.subspan(entry.offset, entry.bytes);
    }
  }
  std::size_t next_constant = 0;
  for (const Entry& entry : entries_) {
    if (entry.kind == Kind::constant) copy_bytes(constants_[next_constant++].bytes(), entry.memory);
  }
  std::map<std::int32_t, std::size_t> bound;  // the bound inputs, by buffer
  for (const Buffer buffer : inputs_) {
    if (entry(buffer).kind == Kind::bound) bound.emplace(buffer.index, plan.inputs_.size());
    plan.inputs_.push_back({entry(buffer).memory});
  }
  plan.calls_.reserve(calls_.size());
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    KernelCall& call = calls_[i];
    std::int64_t bytes = 0;
    const std::size_t first_result = plan.results_.size();
    const std::size_t first_operand = plan.operands_.size();
    for (std::size_t k = 0; k < results_[i].size(); ++k) {
      const Entry& result = entry(results_[i][k]);
      plan.results_.push_back(result.memory.data());
      bytes += static_cast<std::int64_t>(result.bytes);
    }
    for (const Buffer operand : call.operands) {
      if (entry(operand).kind == Kind::bound) {
        plan.inputs_[bound.at(operand.index)].operands.push_back(plan.operands_.size());
      }
      plan.operands_.push_back(entry(operand).memory.data());
      bytes += static_cast<std::int64_t>(entry(operand).bytes);
    }
    plan.calls_.push_back({std::move(call.name), std::move(call.kernel), first_result,
                           results_[i].size(), first_operand, call.operands.size(), call.flops,
                           bytes});
    if (call.kind == CallKind::fallback) ++plan.fallbacks_;
  }
  for (const Buffer buffer : outputs_) {
    if (entry(buffer).kind == Kind::bound) {
      plan.inputs_[bound.at(buffer.index)].outputs.push_back(plan.outputs_.size());
      plan.outputs_.emplace_back(static_cast<const std::byte*>(nullptr), entry(buffer).bytes);
    } else {
      plan.outputs_.push_back(entry(buffer).memory);
    }
  }
  for (const Commit& commit : commits_) {
    if (!commit.in_place) {
      plan.commits_.push_back({entry(commit.value).memory, entry(commit.external).memory});
    }
  }
  plan.checkpoint_ = checkpoint_ ? static_cast<std::size_t>(*checkpoint_ + 1) : plan.calls_.size();
  *this = PlanBuilder();
  return plan;
}

}  // namespace mulgrad
