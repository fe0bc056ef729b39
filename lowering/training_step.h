// A training step as programs: the loss is traced and derived, the updates are traced, each slot's
// passes run, and coverage is known before anything is lowered or runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/derive.h"
#include "autodiff/optimizers.h"
#include "autodiff/tape.h"
#include "core/rewrite/pass_manager.h"
#include "lowering/coverage.h"
#include "lowering/target.h"
#include "lowering/walk.h"

namespace mulgrad {

struct DeclaredInput {
  std::string name;
  Type type;
};

// Traced values by name.
class NamedVars {
 public:
  // `missing` is the category of the error for a name that is not there.
  NamedVars(std::vector<NamedVar> vars, Category missing);

  Var operator[](std::string_view name) const;
  std::span<const NamedVar> all() const { return vars_; }  // in the order of the declaration

 private:
  std::vector<NamedVar> vars_;
  Category missing_;
};

// What an update callback gets for one parameter.
struct UpdateArguments {
  Var parameter;
  Var gradient;     // typed as the parameter
  NamedVars state;  // each typed as the parameter
  NamedVars optimizer_inputs;
};

// What a training step is made of. Every name matches [A-Za-z_][A-Za-z0-9_.$-]*.
struct TrainingSpec {
  std::string name = "step";
  // What the loss takes, parameters included. Types may be symbolic, a parameter's may not.
  std::vector<DeclaredInput> inputs;
  std::vector<std::string> parameters;  // names of inputs, in the order of gradients and updates
  // Names of f32 inputs that no one gives: before every step whoever runs it fills them with
  // numbers uniform in [0, 1). Element i (row-major) of entry k in step n is number i of stream
  // step_stream(k, n) of `seed`, so on every backend and after every resume it is the same.
  std::vector<std::string> random_inputs;
  std::uint64_t seed = 0;
  // Traces the loss; asking for an undeclared name is invalid_loss_signature.
  std::function<Var(Tape&, const NamedVars&)> loss;
  // What to do for a parameter that the loss does not depend on.
  Unused unused = Unused::error;

  // Tensors kept per parameter, typed as it.
  std::vector<std::string> state;
  // What all updates of a step share, such as the rate.
  std::vector<DeclaredInput> optimizer_inputs;
  // Traces one step of one parameter; asking for an undeclared name is invalid_update_signature.
  // Called once per distinct parameter type.
  std::function<Update(const UpdateArguments&)> update;
  // Traces the optimizer inputs, by name, from the rank-0 i64 count of the step, 1 in the first. If
  // empty, they are inputs of the step.
  std::function<std::vector<NamedVar>(Var count)> step_scalars;

  // Scales all gradients of a step alike, so that their global norm, the root of the sum of all
  // their squares, is at most this. None: they stay as they are.
  std::optional<double> clip_norm = std::nullopt;
};

// The spec with state, optimizer inputs, update and step scalars of an optimizer. The scalars take
// the dtype of the first parameter. Throws invalid_training_declaration for a spec without
// parameters and for a null optimizer.
TrainingSpec with_optimizer(TrainingSpec spec, std::shared_ptr<const Optimizer> optimizer);

// The passes of each slot. The programs of clip and step scalars take those of the update slot.
struct Passes {
  std::vector<Pass> forward;
  std::vector<Pass> derivative;
  std::vector<Pass> update;

  // The default pipeline of every slot.
  static Passes for_target(const Target& target);
};

// A step after tracing, deriving and its passes. Artifacts are named "forward", "derivative",
// "update.<type>" such as "update.64x10xf32", "clip" and "step_scalars".
//   forward       the declared inputs -> "loss", captures
//   derivative    the seed "loss", captures -> "grad.<parameter>" in order
//   update        "parameter", "gradient", the state, the optimizer inputs, with clipping "clip" ->
//                 "parameter", state
//   clip          with clipping: the gradients in order -> "clip", of rank 0
//   step_scalars  "count" -> the optimizer inputs
class TrainingStep {
 public:
  std::string name;
  std::vector<std::string> parameters;
  std::vector<std::string> state;
  std::vector<DeclaredInput> optimizer_inputs;
  std::vector<CoverageArtifact>
      artifacts;                       // forward, derivative, updates; clip and step scalars if any
  std::vector<std::size_t> update_of;  // per parameter, an index into artifacts
  bool has_clip = false;
  bool has_step_scalars = false;
  Coverage coverage;

  const Artifact& forward() const { return artifacts[0].artifact; }
  const Artifact& derivative() const { return artifacts[1].artifact; }
  const Artifact& update(std::size_t parameter) const {
    return artifacts[update_of[parameter]].artifact;
  }
  // Null without clipping.
  const Artifact* clip() const {
    return has_clip ? &artifacts[artifacts.size() - (has_step_scalars ? 2 : 1)].artifact : nullptr;
  }
  // Null when the optimizer inputs come from outside.
  const Artifact* step_scalars() const {
    return has_step_scalars ? &artifacts.back().artifact : nullptr;
  }
};

// Traces the loss, binds, derives, traces an update per distinct parameter type and the step
// scalars, runs the passes of each slot, and takes the coverage by `target` and `has_handler`; an
// unsupported node is no error yet. Throws
//   invalid_training_declaration  no inputs, no parameters, no loss or update; a name declared or
//                                 listed twice, a parameter that is no input or is symbolic, a
//                                 random input that is a parameter, no input or not f32, a
//                                 clip_norm that is not finite and above 0
//   invalid_loss_signature        the loss asks for an input that is not declared
//   invalid_loss_output           the loss is no value of its tape, or not of a float dtype
//   invalid_update_signature      an optimizer input or state that is asked for and not declared,
//                                 or named "parameter", "gradient", with clipping "clip", or as
//                                 another one; a step scalar
//                                 that is missing, unexpected or of another type
//   invalid_update_output         an update that is no value of its tape or not typed as the
//                                 parameter; too many or too few states
// and what bind, derive, run_passes and the callbacks throw.
TrainingStep prepare_training_step(const TrainingSpec& spec, const Bindings& bindings,
                                   const Target& target, const HasHandler& has_handler,
                                   const Passes& passes);

// Throws unsupported_operator listing every unsupported node of every artifact.
void require_supported(const TrainingStep& step);

// The whole step as one program. Inputs: those of the forward program, then "<parameter>.<state>"
// per parameter and state, then "count" or the optimizer inputs. Outputs: "loss", then
// "new.<parameter>" per parameter, then "new.<parameter>.<state>". The loss is seeded with ones.
Program step_program(const TrainingStep& step);

template <class V>
struct CompiledTrainingStep {
  TrainingStep step;
  std::vector<Lowered<V>> lowered;  // per entry of step.artifacts
};

// Prepares the step, and lowers every artifact with the one registry; `input` makes the value of
// each artifact's inputs. Throws what prepare_training_step throws; then, before any handler runs,
// unsupported_operator with every node of every artifact that the target refuses or the registry
// has no handler for; then what lower() throws.
template <class V>
CompiledTrainingStep<V> compile_training_step(const TrainingSpec& spec, const Bindings& bindings,
                                              const Target& target,
                                              const HandlerRegistry<V>& registry,
                                              const std::type_identity_t<InputHandler<V>>& input,
                                              const Passes& passes) {
  const auto has_handler = [&](const Op& op) { return registry.find(op) != nullptr; };
  CompiledTrainingStep<V> result;
  result.step = prepare_training_step(spec, bindings, target, has_handler, passes);
  require_supported(result.step);
  for (const CoverageArtifact& entry : result.step.artifacts) {
    result.lowered.push_back(lower(entry.artifact, registry, input));
  }
  return result;
}

}  // namespace mulgrad
