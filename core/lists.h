// Lists that ask for no memory each, for what there is one of per node of a program.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace mulgrad {

// At most `Most` items, in place; throws out_of_range where more are appended.
template <class T, std::size_t Most>
class ShortList {
 public:
  ShortList() = default;
  ShortList(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }

  void push_back(const T& item) { items_.at(size_++) = item; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  const T& back() const { return items_[size_ - 1]; }
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }
  bool operator==(const ShortList& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::array<T, Most> items_ = {};
  std::size_t size_ = 0;
};

// Many lists, one behind the other in one piece of memory.
template <class T>
class Lists {
 public:
  Lists() = default;
  // Each goes from its begin to the next one's, the last to the end.
  Lists(std::vector<std::size_t> begins, std::vector<T> items)
      : begins_(std::move(begins)), items_(std::move(items)) {}

  std::size_t size() const { return begins_.size(); }
  std::span<const T> operator[](std::size_t list) const {
    const std::size_t end = list + 1 < begins_.size() ? begins_[list + 1] : items_.size();
    return std::span(items_).subspan(begins_[list], end - begins_[list]);
  }

  // Starts the next list, to which items are appended from now on.
  void start() { begins_.push_back(items_.size()); }
  void append(const T& item) { items_.push_back(item); }
  void reserve(std::size_t lists) { begins_.reserve(lists); }

 private:
  std::vector<std::size_t> begins_;
  std::vector<T> items_;
};

// The numbers below `count`, ascending, in the lists that `list_of` names for them; a number that
// it sends to `lists` or beyond is in none.
Lists<std::int32_t> numbers_by_list(std::size_t lists, std::size_t count, const auto& list_of) {
  std::vector<std::size_t> places(lists);  // the size of each list, then its end, then its begin
  for (std::size_t i = 0; i < count; ++i) {
    if (list_of(i) < lists) ++places[list_of(i)];
  }
  std::size_t all = 0;
  for (std::size_t& place : places) place = all += place;
  std::vector<std::int32_t> numbers(all);
  for (std::size_t i = count; i-- > 0;) {
    if (list_of(i) < lists) numbers[--places[list_of(i)]] = static_cast<std::int32_t>(i);
  }
  return {std::move(places), std::move(numbers)};
}

}  // namespace mulgrad
