// The conformance kit: whether an implementation of the ops computes what the interpreter computes.
// It knows programs, targets and tensors alone, so anything that can run a program can be checked:
//
//   const auto report = conformance::run(target, [&](const Program& program, auto inputs) {
//     return my_device.compile(program).run(inputs);
//   });
//   EXPECT_TRUE(report.passed()) << report.to_string();
//
// Every op case (tests/support/op_cases.h) and hazard that the target takes is run; no other.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "lowering/coverage.h"
#include "lowering/registry.h"
#include "lowering/target.h"
#include "lowering/walk.h"

namespace mulgrad::conformance {

// Runs a program without symbols and returns its outputs in order. An exception is a failure.
using Runner = std::function<std::vector<Tensor>(const Program&, std::span<const Tensor>)>;

// What is checked. A case is judged against the interpreter within tolerance_of() its op; what
// other checks demand stands beside them.
enum class Check : std::uint8_t {
  op_case,         // ordinary values
  special_values,  // NaN, infinities, signed zeros, subnormals, the largest; through products too
  size_zero,       // something has no elements, such as the inner size of a product
  size_one,        // single elements
  stale_memory,    // a NaN of an earlier run must not show: beta = 0, also at inner size 0
  zeros_and_ones,  // products with ones carry zeros (of either sign), infinities and NaN
  exact_products,  // permutations and one-hot rows move every bit of a finite value
  precision,       // f32 products within 1e-6 of |A| |B|; sums of up to 2^20 terms within 2e-6
  repetition       // two runs are equal in every bit
};
std::string_view to_string(Check check);

struct Failure {
  Check check;
  std::string name;  // of the case
  std::string text;  // what was found and expected
};

struct Report {
  std::map<Check, int> cases;        // how many were run
  std::vector<std::string> refused;  // op cases that the target does not take
  std::vector<Failure> failures;

  bool passed() const { return failures.empty(); }
  // The checks that have failures.
  std::vector<Check> failed() const;
  // A line per check, then a line per failure.
  std::string to_string() const;
};

// Checks a runner. A case is run if the target takes its nodes and, where `has_handler` is given,
// each of its ops has one.
Report run(const Target& target, const Runner& runner, const HasHandler& has_handler = {});

// Checks a registry whose handlers compute at once: `upload` makes the value of an input,
// `download` reads a result back.
template <class V>
Report run(const HandlerRegistry<V>& registry, const Target& target,
           const std::type_identity_t<std::function<V(const Tensor&)>>& upload,
           const std::type_identity_t<std::function<Tensor(const V&)>>& download) {
  const Runner runner = [&](const Program& program, std::span<const Tensor> inputs) {
    const Lowered<V> lowered = lower(
        Artifact::untouched("case", program), registry, [&](const InputContext& context) -> V {
          return upload(inputs[static_cast<std::size_t>(context.index)]);
        });
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < lowered.outputs.size(); ++i) {
      outputs.push_back(download(lowered.output(i)));
    }
    return outputs;
  };
  return run(target, runner, [&](const Op& op) { return registry.find(op) != nullptr; });
}

}  // namespace mulgrad::conformance
