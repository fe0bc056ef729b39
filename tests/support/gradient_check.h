// Gradients against finite differences, of any order.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "autodiff/derive.h"
#include "core/tensor.h"

namespace mulgrad::testing {

// Runs the forward program, then the derivative program on its captures and the seeds: the
// gradients, in their order. `seeds` holds one tensor per seed.
std::vector<Tensor> gradients_of(const Derivative& derivative, std::span<const Tensor> inputs,
                                 std::span<const Tensor> seeds);

// The same for one output and a seed of ones.
std::vector<Tensor> gradients_of(const Derivative& derivative, std::span<const Tensor> inputs);

// Derives all float outputs with respect to all float inputs, `order` times over, and compares each
// time with central differences of the weighted sum of the outputs, for fixed weights. All float
// inputs are f64 and away from kinks by 1e-3. `relative` is the error allowed, of the largest
// gradient or 1.
::testing::AssertionResult check_gradients(const Program& program, std::vector<Tensor> inputs,
                                           int order, double relative = 1e-7);

}  // namespace mulgrad::testing
