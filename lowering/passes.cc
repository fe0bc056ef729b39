#include "lowering/passes.h"

#include <utility>

#include "lowering/cleaning.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "lowering/legalize.h"

namespace mulgrad {

std::vector<NamedPass> all_passes(const Target& target) {
  return {
      {"means over both axes of a matrix become products with ones; any other mean is an error",
       expand_mean()},
      {"the derivative of such a mean, found by what it computes, becomes a product with ones",
       expand_mean_derivative()},
      {"stop_gradient becomes its operand", remove_stop_gradient()},
      {"sums and means over axes of size 1 become reshapes", extent_one_reduce_to_reshape()},
      {"ops on constants become constants", fold_constants()},
      {"every tensor operand of an elementwise op gets the shape of the result",
       materialize_broadcasts()},
      {"elementwise ops read the operand of a broadcast where the target's kernels broadcast",
       elide_broadcasts(target)},
      {"what the target lacks becomes products with constants and elementwise ops",
       legalize_to_matmul(target)},
      {"products with the 1x1 matrix of one become what it multiplies", unit_products()},
      {"transposes of transposes and reshapes of reshapes become one, or none", transpose_pairs()},
      {"equal nodes become one", common_subexpressions()},
      {"nodes that no output depends on go", dead_code()},
  };
}

std::optional<Pass> pass_by_name(std::string_view name, const Target& target) {
  for (NamedPass& known : all_passes(target)) {
    if (known.pass.name == name) return std::move(known.pass);
  }
  return std::nullopt;
}

}  // namespace mulgrad
