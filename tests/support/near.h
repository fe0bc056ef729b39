// Comparison of tensors in tests.
#pragma once

#include <gtest/gtest.h>

#include "core/tensor.h"

namespace mulgrad::testing {

enum class ZeroSign { matters, free };

// An element may differ by `relative` times itself plus `of_largest` times the largest finite
// magnitude of the expected tensor. Both 0: the values must be equal.
struct Tolerance {
  double relative = 0;
  double of_largest = 0;
  ZeroSign zero_sign = ZeroSign::matters;
};

// Success when dtype and sizes are equal and every element is near enough. NaN equals NaN, an
// infinity only itself, and -0 differs from 0 unless the sign is free.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, Tolerance tolerance = {});

}  // namespace mulgrad::testing
