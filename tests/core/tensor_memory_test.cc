#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/tensor.h"

namespace mulgrad {
namespace {

// In memory that others have written before, every byte of a new tensor is zero.
TEST(Tensor, InReusedMemory_IsZero) {
  for (const std::int64_t size : {1, 7, 100, 4096}) {
    for (int repeat = 0; repeat < 16; ++repeat) {
      std::vector<std::vector<unsigned char>> dirty(
          8, std::vector<unsigned char>(static_cast<std::size_t>(size * 4), 0xAB));
      dirty.clear();
      const Tensor tensor(DType::f32, {size});
      EXPECT_EQ(std::ranges::count(tensor.bytes(), std::byte{0}), size * 4);
    }
  }
}

}  // namespace
}  // namespace mulgrad
