// The lowering walk: hands every reachable node of a program to its handler, once, operands first.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lowering/registry.h"

namespace mulgrad {

// The value of a program input. Called once per input, in order, before any handler.
template <class V>
using InputHandler = std::function<V(const InputContext&)>;

// What the outputs and captures of a program became. Several may share a value.
template <class V>
struct Lowered {
  std::vector<V> values;
  std::vector<std::size_t> outputs;  // per entry of program.outputs(), an index into values

  const V& output(std::size_t index) const { return values[outputs[index]]; }
};

// The reachable nodes in the order in which they are lowered: a node that has a single use, by a
// node, stands directly before its consumer where dependencies allow; else program order. Of
// several such producers of one consumer, the one with the fewest nodes behind it stands next to
// it, and one without operands first.
std::vector<std::int64_t> lowering_order(const Program& program);

// The reachable nodes of the artifact for which the registry has no handler, in program order.
template <class V>
std::vector<Refusal> without_handler(const Artifact& artifact, const HandlerRegistry<V>& registry) {
  std::vector<Refusal> result;
  const std::vector<bool> reachable = reachable_nodes(artifact.program);
  for (std::size_t i = 0; i < reachable.size(); ++i) {
    const Op& op = artifact.program.nodes()[i].op;
    if (!reachable[i] || registry.find(op) != nullptr) continue;
    result.push_back({artifact.label(static_cast<std::int64_t>(i)),
                      "no handler for " + std::string(info(op).name)});
  }
  return result;
}

namespace detail {

// Which values are ready, how often each will still be read, and which nodes are done.
class WalkState {
 public:
  explicit WalkState(const Program& program);

  const std::vector<std::int64_t>& order() const { return order_; }
  bool done(std::int64_t node) const { return done_[static_cast<std::size_t>(node)]; }
  // The next nodes of the order from `position` on that are not done, at most `window`.
  std::vector<std::int64_t> offer(std::size_t position, std::int64_t window) const;
  // The one claimed node that others read. Throws handler_contract_violation when the claim is
  // refused.
  std::int64_t check_claim(const Artifact& artifact, std::span<const std::int64_t> offered,
                           std::span<const std::int64_t> claimed) const;
  // The nodes are emitted; returns the values that nothing reads any more.
  std::vector<ValueId> finish(const Program& program, std::span<const std::int64_t> nodes);

 private:
  std::vector<std::int64_t> order_;
  std::vector<bool> done_;
  std::vector<std::int64_t> input_uses_;
  std::vector<std::int64_t> node_uses_;
};

// The exception of a handler as handler_contract_violation at `label`, with its text.
[[noreturn]] void rethrow_from_handler(const std::string& label);

template <class V>
V checked(V value) {
  if constexpr (requires { static_cast<bool>(value == nullptr); }) {
    if (value == nullptr) throw std::runtime_error("the handler returned nothing");
  }
  return value;
}

template <class V>
class Walk {
 public:
  Walk(const Artifact& artifact, const HandlerRegistry<V>& registry)
      : artifact_(artifact),
        registry_(registry),
        state_(artifact.program),
        nodes_(artifact.program.nodes().size()) {}

  Lowered<V> run(const InputHandler<V>& input) {
    for (std::int64_t i = 0; i < std::ssize(artifact_.program.inputs()); ++i) {
      guard(artifact_.input_label(i), [&] { inputs_.push_back(checked(input({artifact_, i}))); });
    }
    for (std::size_t position = 0; position < state_.order().size(); ++position) {
      const std::int64_t node = state_.order()[position];
      if (state_.done(node) || try_fusion(position)) continue;
      emit(node);
    }
    return collect();
  }

 private:
  template <class F>
  void guard(const std::string& label, F&& call) {
    try {
      call();
    } catch (...) {
      rethrow_from_handler(label);
    }
  }

  const V& value(ValueId id) const {
    return id.is_input() ? *inputs_[static_cast<std::size_t>(id.index())]
                         : *nodes_[static_cast<std::size_t>(id.index())];
  }

  void emit(std::int64_t index) {
    const Program& program = artifact_.program;
    const Node& node = program.node(ValueId::node(index));
    operands_.clear();
    for (const Operand& operand : node.operands) {
      if (operand.is_literal()) {
        operands_.emplace_back(operand.literal());
      } else {
        operands_.emplace_back(value(operand.value()), program.type(operand.value()));
      }
    }
    try {
      nodes_[static_cast<std::size_t>(index)] =
          checked((*registry_.find(node.op))({artifact_, index}, operands_));
    } catch (...) {
      rethrow_from_handler(artifact_.label(index));
    }
    release(std::span(&index, 1));
  }

  bool try_fusion(std::size_t position) {
    if (!registry_.fusion()) return false;
    const FusionHook<V>& hook = *registry_.fusion();
    const std::vector<std::int64_t> offered = state_.offer(position, hook.window);
    const std::string label = artifact_.label(offered.front());
    std::optional<FusionClaim<V>> claim;
    guard(label, [&] { claim = hook.offer(artifact_, offered); });
    if (!claim) return false;
    const std::int64_t escaping = state_.check_claim(artifact_, offered, claim->nodes);
    guard(label, [&] {
      if (!claim->emit) throw std::runtime_error("the fusion claim has no emitter");
      const auto lookup = [&](ValueId id) -> const V& {
        const bool ready = id.is_input() ? id.index() < std::ssize(inputs_)
                                         : id.index() < std::ssize(nodes_) &&
                                               nodes_[static_cast<std::size_t>(id.index())];
        if (!ready) throw std::runtime_error("the value " + id.to_string() + " is not ready");
        return value(id);
      };
      nodes_[static_cast<std::size_t>(escaping)] = checked(claim->emit(lookup));
    });
    release(claim->nodes);
    return true;
  }

  void release(std::span<const std::int64_t> nodes) {
    for (const ValueId id : state_.finish(artifact_.program, nodes)) {
      (id.is_input() ? inputs_ : nodes_)[static_cast<std::size_t>(id.index())].reset();
    }
  }

  Lowered<V> collect() {
    Lowered<V> result;
    std::map<ValueId, std::size_t> places;
    for (const Output& output : artifact_.program.outputs()) {
      const auto [place, is_new] = places.emplace(output.value, result.values.size());
      if (is_new) {
        auto& slot = output.value.is_input() ? inputs_ : nodes_;
        result.values.push_back(*std::move(slot[static_cast<std::size_t>(output.value.index())]));
      }
      result.outputs.push_back(place->second);
    }
    return result;
  }

  const Artifact& artifact_;
  const HandlerRegistry<V>& registry_;
  WalkState state_;
  std::vector<std::optional<V>> inputs_;
  std::vector<std::optional<V>> nodes_;
  std::vector<HandlerOperand<V>> operands_;
};

}  // namespace detail

// Lowers the artifact's program. Before any handler runs: unsupported_operator listing every
// reachable node without a handler. A handler or fusion hook that throws or returns nothing, and a
// refused fusion claim: handler_contract_violation with the node named and the original text kept.
// A value is destroyed after its last use.
template <class V>
Lowered<V> lower(const Artifact& artifact, const HandlerRegistry<V>& registry,
                 const std::type_identity_t<InputHandler<V>>& input) {
  throw_if_refused(without_handler(artifact, registry));
  return detail::Walk<V>(artifact, registry).run(input);
}

}  // namespace mulgrad
