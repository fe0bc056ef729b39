#include "core/hash_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mulgrad {
namespace {

TEST(HashIndex, ManyEntriesOfFewHashes_AreFoundAgainAfterGrowing) {
  HashIndex index;
  std::vector<std::string> names;
  const auto enter = [&](const std::string& name, std::int64_t number) {
    return index.find_or_insert(name.size(), number, [&](std::int64_t other) {
      return names[static_cast<std::size_t>(other)] == name;
    });
  };
  for (std::int64_t i = 0; i < 300; ++i) {
    names.push_back(std::to_string(i));
    EXPECT_EQ(enter(names.back(), i), -1) << i;
  }
  for (std::int64_t i = 0; i < 300; ++i) EXPECT_EQ(enter(std::to_string(i), 1000), i);
}

TEST(HashIndex, OfTwoThatAreTheSame_TheFirstIsFound) {
  HashIndex index(2);
  const auto is_any = [](std::int64_t) { return true; };
  EXPECT_EQ(index.find_or_insert(7, 4, is_any), -1);
  EXPECT_EQ(index.find_or_insert(7, 5, is_any), 4);
  EXPECT_EQ(index.find_or_insert(8, 6, is_any), -1);  // another hash
}

}  // namespace
}  // namespace mulgrad
