// Numbers found again by the hash of what they stand for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mulgrad {

// One flat table without an allocation per entry, which grows by doubling: programs of a million
// nodes enter each node, or each name.
class HashIndex {
 public:
  // With room for that many entries.
  explicit HashIndex(std::size_t entries = 0) : slots_(std::bit_ceil(2 * entries + 16)) {}

  // The first number of this hash that `is_same` takes; where there is none, -1, and `number`,
  // which is not negative, is entered.
  std::int64_t find_or_insert(std::uint64_t hash, std::int64_t number, const auto& is_same) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    std::size_t at = first_place(hash);
    for (; slots_[at].number >= 0; at = next_place(at)) {
      if (slots_[at].hash == hash && is_same(slots_[at].number)) return slots_[at].number;
    }
    slots_[at] = {hash, number};
    ++count_;
    return -1;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::int64_t number = -1;  // -1 for a free slot
  };

  std::size_t first_place(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
  std::size_t next_place(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number < 0) continue;
      std::size_t at = first_place(slot.hash);
      while (slots_[at].number >= 0) at = next_place(at);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace mulgrad
