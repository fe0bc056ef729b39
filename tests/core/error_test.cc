#include "core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace mulgrad {
namespace {

TEST(Error, FirstThirtyCategories_KeepTheirOrder) {
  const std::string_view expected[] = {"unsupported_operator",
                                       "missing_derivative_behavior",
                                       "missing_derivative_ir",
                                       "non_differentiable_route",
                                       "missing_shape_metadata",
                                       "missing_dtype_metadata",
                                       "dtype_not_differentiable",
                                       "shape_mismatch",
                                       "unresolved_symbolic_shape",
                                       "symbolic_shape_mismatch",
                                       "broadcast_shape_mismatch",
                                       "matmul_shape_mismatch",
                                       "invalid_permutation",
                                       "reduction_shape_mismatch",
                                       "unsupported_reduction",
                                       "seed_shape_mismatch",
                                       "malformed_derivative_ir",
                                       "side_effecting_route_unsupported",
                                       "autodiff_not_implemented",
                                       "dtype_mismatch",
                                       "missing_dependency",
                                       "ambiguous_producer",
                                       "invalid_selected_output",
                                       "handler_contract_violation",
                                       "invalid_update_signature",
                                       "invalid_update_output",
                                       "invalid_training_declaration",
                                       "invalid_loss_signature",
                                       "invalid_loss_output",
                                       "expansion_contract_violation",
                                       "parse_error"};
  static_assert(std::size(expected) == 31);
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(to_string(static_cast<Category>(i)), expected[i]) << i;
  }
}

TEST(Error, What_LeavesOutEmptyParts) {
  const Error bare(Category::io_error, "cannot read \"x\"");
  EXPECT_STREQ(bare.what(), "io_error: cannot read \"x\"");
  const Error full = bare.at_node("%3 stablehlo.add").at_location("a.mlir:2:5");
  EXPECT_STREQ(full.what(), "a.mlir:2:5: io_error: %3 stablehlo.add: cannot read \"x\"");
}

TEST(Error, PlaceThatIsKnown_IsNotReplaced) {
  const Error error = Error(Category::io_error, "m").at_node("inner").at_location("a:1:1");
  EXPECT_EQ(error.at_node("outer").node(), "inner");
  EXPECT_EQ(error.at_location("b:2:2").location(), "a:1:1");
}

}  // namespace
}  // namespace mulgrad
