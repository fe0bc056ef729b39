// HandlerRegistry: what a consumer does for each op. A handler turns a node and the values of its
// operands into a value of the consumer's own type V (a kernel call, a line of text, a wire). V is
// opaque and may be move-only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lowering/artifact.h"

namespace mulgrad {

// Which node a handler is asked for.
struct HandlerContext {
  const Artifact& artifact;
  std::int64_t index;  // of the node in artifact.program

  const Node& node() const { return artifact.program.node(ValueId::node(index)); }
  std::string label() const { return artifact.label(index); }
};

// Which program input a value is asked for.
struct InputContext {
  const Artifact& artifact;
  std::int64_t index;

  const Input& input() const { return artifact.program.inputs()[static_cast<std::size_t>(index)]; }
};

// What a handler sees of an operand: a value with its type, or a literal.
template <class V>
class HandlerOperand {
 public:
  HandlerOperand(const V& value, const Type& type) : value_(&value), type_(&type) {}
  explicit HandlerOperand(const Literal& literal) : literal_(literal) {}

  bool is_literal() const { return value_ == nullptr; }
  const Literal& literal() const {
    INTERNAL_CHECK(is_literal());
    return literal_;
  }
  const V& value() const {
    INTERNAL_CHECK(!is_literal());
    return *value_;
  }
  const Type& type() const {  // of a value
    INTERNAL_CHECK(!is_literal());
    return *type_;
  }
  DType dtype() const { return is_literal() ? literal_.dtype : type_->dtype; }

 private:
  const V* value_ = nullptr;
  const Type* type_ = nullptr;
  Literal literal_;
};

// Several nodes that one emission covers. Exactly one of their results is read by others; the
// emitted value stands for it. `emit` gets at the values that the claimed nodes read from outside
// through the function that it is handed, by ValueId of the program.
template <class V>
struct FusionClaim {
  using Lookup = std::function<const V&(ValueId)>;
  std::vector<std::int64_t> nodes;
  std::function<V(const Lookup&)> emit;
};

// Offered the next unclaimed nodes in walk order, `window` of them or as many as are left, the node
// that is due first. Returns nothing to decline; a claim holds the due node.
template <class V>
struct FusionHook {
  std::int64_t window = 2;
  std::function<std::optional<FusionClaim<V>>(const Artifact&, std::span<const std::int64_t>)>
      offer;
};

inline constexpr std::size_t kOpCount = std::variant_size_v<OpBase>;

template <class Struct>
OpKind op_kind() {
  return kind_of(Op(Struct{}));
}

template <class V>
class HandlerRegistry {
 public:
  using Value = V;
  using Handler = std::function<V(const HandlerContext&, std::span<const HandlerOperand<V>>)>;

  // The handler of an op. Throws handler_contract_violation naming the op when the handler is empty
  // or the op has one. A handler of OpKind::Custom takes the Custom ops that have none by name.
  void add(OpKind kind, Handler handler) {
    Handler& slot = handlers_[static_cast<std::size_t>(kind)];
    check_new(std::string(info(kind).name), handler, static_cast<bool>(slot));
    slot = std::move(handler);
  }
  template <class Struct>
  void add(Handler handler) {
    add(op_kind<Struct>(), std::move(handler));
  }
  // The handler of the Custom ops of that name.
  void add_custom(const std::string& name, Handler handler) {
    check_new("Custom @" + name, handler, customs_.count(name) > 0);
    customs_.emplace(name, std::move(handler));
  }
  // Throws handler_contract_violation for an empty hook, a second one, or a window below 1.
  void set_fusion(FusionHook<V> hook) {
    if (fusion_ || !hook.offer || hook.window < 1) {
      throw Error(Category::handler_contract_violation,
                  "found a second or empty fusion hook or one with the window " +
                      std::to_string(hook.window) + ", expected one hook, window >= 1");
    }
    fusion_ = std::move(hook);
  }

  // Null when the op has no handler.
  const Handler* find(const Op& op) const {
    if (const auto* custom = std::get_if<Custom>(&op)) {
      const auto found = customs_.find(custom->name());
      if (found != customs_.end()) return &found->second;
    }
    const Handler& handler = handlers_[op.index()];
    return handler ? &handler : nullptr;
  }
  // The ops that have a handler, Custom when a name has one. See Target::of.
  std::vector<OpKind> ops() const {
    std::vector<OpKind> result;
    for (const OpInfo& op : all_ops()) {
      const bool by_name = op.kind == OpKind::Custom && !customs_.empty();
      if (by_name || handlers_[static_cast<std::size_t>(op.kind)]) result.push_back(op.kind);
    }
    return result;
  }
  const std::optional<FusionHook<V>>& fusion() const { return fusion_; }

 private:
  static void check_new(const std::string& op, const Handler& handler, bool taken) {
    if (!handler) {
      throw Error(Category::handler_contract_violation, "found an empty handler for " + op);
    }
    if (taken) {
      throw Error(Category::handler_contract_violation,
                  "found a second handler for " + op + ", expected one");
    }
  }

  std::array<Handler, kOpCount> handlers_;
  std::map<std::string, Handler, std::less<>> customs_;
  std::optional<FusionHook<V>> fusion_;
};

}  // namespace mulgrad
