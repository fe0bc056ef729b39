// Custom ops of third parties: what the library needs to know to infer, run and derive one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expr.h"
#include "core/tensor.h"
#include "core/type.h"

namespace mulgrad {

class CustomDefinition {
 public:
  explicit CustomDefinition(std::string name) : name_(std::move(name)) {}
  virtual ~CustomDefinition() = default;
  CustomDefinition(const CustomDefinition&) = delete;
  CustomDefinition& operator=(const CustomDefinition&) = delete;

  const std::string& name() const { return name_; }

  // The result type; throws Error when the operands do not fit. `attributes` is the op's free text.
  virtual Type infer(const std::string& attributes, std::span<const Type> operands) const = 0;
  // The result, of the inferred type.
  virtual Tensor evaluate(const std::string& attributes,
                          std::span<const Tensor> operands) const = 0;
  // One cotangent per operand, typed as the operand; an empty entry contributes nothing. nullopt
  // (the default) means that the op declares no derivative: autodiff_not_implemented.
  virtual std::optional<std::vector<std::optional<Var>>> derivative(const std::string& attributes,
                                                                    std::span<const Var> operands,
                                                                    Var result,
                                                                    Var cotangent) const;

 private:
  std::string name_;
};

// The custom ops that a parser knows, by name.
using CustomRegistry = std::map<std::string, std::shared_ptr<const CustomDefinition>, std::less<>>;

}  // namespace mulgrad
