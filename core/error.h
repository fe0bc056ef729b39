// Categorised errors. User faults throw Error; our own bugs abort through INTERNAL_CHECK.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mulgrad {

// A closed list. The order of the first thirty is part of the compile contract; append after them.
#define MULGRAD_CATEGORIES(X)                                                               \
  X(unsupported_operator)                                                                   \
  X(missing_derivative_behavior)                                                            \
  X(missing_derivative_ir) /* impossible here: the rule table is checked at compile time */ \
  X(non_differentiable_route)                                                               \
  X(missing_shape_metadata) /* parser only: a tensor type is always complete in the IR */   \
  X(missing_dtype_metadata) /* parser only, as above */                                     \
  X(dtype_not_differentiable)                                                               \
  X(shape_mismatch)                                                                         \
  X(unresolved_symbolic_shape)                                                              \
  X(symbolic_shape_mismatch)                                                                \
  X(broadcast_shape_mismatch)                                                               \
  X(matmul_shape_mismatch)                                                                  \
  X(invalid_permutation)                                                                    \
  X(reduction_shape_mismatch)                                                               \
  X(unsupported_reduction)                                                                  \
  X(seed_shape_mismatch)                                                                    \
  X(malformed_derivative_ir) /* a text program whose seed or capture marks contradict it */ \
  X(side_effecting_route_unsupported) /* impossible here: no op has side effects */         \
  X(autodiff_not_implemented)         /* a Custom op that declares no derivative */         \
  X(dtype_mismatch)                                                                         \
  X(missing_dependency)                                                                     \
  X(ambiguous_producer) /* parser only: a name defined twice */                             \
  X(invalid_selected_output)                                                                \
  X(handler_contract_violation)                                                             \
  X(invalid_update_signature)                                                               \
  X(invalid_update_output)                                                                  \
  X(invalid_training_declaration)                                                           \
  X(invalid_loss_signature)                                                                 \
  X(invalid_loss_output)                                                                    \
  X(expansion_contract_violation)                                                           \
  X(parse_error)                                                                            \
  X(io_error)                                                                               \
  X(invalid_argument)  /* a call's own argument is out of its documented domain */          \
  X(arity_mismatch)    /* an op with too many or too few operands */                        \
  X(invalid_attribute) /* an op attribute out of its domain */                              \
  X(invalid_literal)   /* a literal where none may stand, or of a kind that cannot be */    \
  X(invalid_name)      /* a name outside [A-Za-z_][A-Za-z0-9_.$-]*, or used twice */        \
  X(invalid_data)      /* data out of range: a label, a ragged row */                       \
  X(non_finite_loss)   /* training met a NaN or infinite loss */                            \
  X(invalid_target)    /* a pass left what the target refuses, or its JSON is wrong */

enum class Category : std::uint8_t {
#define X(name) name,
  MULGRAD_CATEGORIES(X)
#undef X
};

// The category's name as spelled in the list.
std::string_view to_string(Category category);

// A user fault. `node` names a node ("%3 stablehlo.add", "forward:%7 mulgrad.mean") or is empty;
// `location` is "file:line:col" or empty. what() is "location: category: node: message", with the
// empty parts left out.
class Error : public std::runtime_error {
 public:
  Error(Category category, std::string message, std::string node = {}, std::string location = {});

  Category category() const { return category_; }
  const std::string& message() const { return message_; }
  const std::string& node() const { return node_; }
  const std::string& location() const { return location_; }

  // The same error with its place filled in, where it has none yet.
  Error at_node(std::string node) const;
  Error at_location(std::string location) const;

 private:
  Category category_;
  std::string message_;
  std::string node_;
  std::string location_;
};

[[noreturn]] void internal_check_failed(const char* condition, const char* file, int line);

}  // namespace mulgrad

// For invariants of our own: a failure is a bug in mulgrad and aborts with file and line.
#define INTERNAL_CHECK(condition) \
  ((condition) ? void(0) : ::mulgrad::internal_check_failed(#condition, __FILE__, __LINE__))
