#include "core/lists.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace mulgrad {
namespace {

template <class T>
std::vector<std::vector<T>> contents(const Lists<T>& lists) {
  std::vector<std::vector<T>> result;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    result.emplace_back(lists[i].begin(), lists[i].end());
  }
  return result;
}

TEST(ShortList, Items_AreThoseAppended) {
  ShortList<int, 3> list{4, 5};
  list.push_back(6);
  EXPECT_EQ(list.back(), 6);
  EXPECT_EQ(std::vector<int>(list.begin(), list.end()), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(list, (ShortList<int, 3>{4, 5, 6}));
  EXPECT_FALSE(list == (ShortList<int, 3>{4, 5}));
  EXPECT_THROW(list.push_back(7), std::out_of_range);
}

TEST(Lists, StartAndAppend_FillOneListAfterTheOther) {
  Lists<int> lists;
  EXPECT_EQ(lists.size(), 0u);
  lists.start();
  lists.append(1);
  lists.append(2);
  lists.start();
  lists.start();
  lists.append(3);
  EXPECT_EQ(contents(lists), (std::vector<std::vector<int>>{{1, 2}, {}, {3}}));
}

TEST(NumbersByList, Numbers_LieAscendingWhereTheyAreSent) {
  const std::vector<std::size_t> list_of{2, 0, 7, 2, 3};
  const auto lists = numbers_by_list(4, 5, [&](std::size_t i) { return list_of[i]; });
  EXPECT_EQ(contents(lists), (std::vector<std::vector<std::int32_t>>{{1}, {}, {0, 3}, {4}}));
  EXPECT_EQ(numbers_by_list(0, 5, [](std::size_t i) { return i; }).size(), 0u);
}

}  // namespace
}  // namespace mulgrad
