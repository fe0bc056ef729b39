// Saving and resuming a Trainer.
#include <string>
#include <utility>

#include "backends/trainer_impl.h"
#include "core/text.h"

namespace mulgrad {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text.empty() ? "none" : text;
}

// Throws for a checkpoint whose parameters are not the model's; puts them into its order.
void match_parameters(Checkpoint& checkpoint, std::span<const Parameter> parameters) {
  const auto fail = [](const std::string& name, Category category, const std::string& message) {
    throw Error(category, message, name);
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const auto found = std::ranges::find(checkpoint.parameters, parameter.name, &NamedTensor::name);
    if (found == checkpoint.parameters.end()) {
      fail(parameter.name, Category::invalid_data,
           "the checkpoint has no such parameter, the model has one of type " +
               parameter.type.to_string());
    }
    const Type type = found->tensor.type();
    if (!(type == parameter.type)) {
      fail(parameter.name,
           type.dtype == parameter.type.dtype ? Category::shape_mismatch : Category::dtype_mismatch,
           "found a parameter of type " + type.to_string() + " in the checkpoint, expected the " +
               "model's " + parameter.type.to_string());
    }
    const auto from = static_cast<std::size_t>(found - checkpoint.parameters.begin());
    std::swap(checkpoint.parameters[i], checkpoint.parameters[from]);
    std::swap(checkpoint.state[i], checkpoint.state[from]);
    if (Trained& best = checkpoint.fit.best; !best.parameters.empty()) {
      std::swap(best.parameters[i], best.parameters[from]);
      std::swap(best.state[i], best.state[from]);
    }
  }
  if (checkpoint.parameters.size() > parameters.size()) {
    fail(checkpoint.parameters[parameters.size()].name, Category::invalid_data,
         "the checkpoint has this parameter, the model has not");
  }
}

// Throws for a checkpoint of other layers, naming the first that differs.
void match_layers(const std::vector<std::string>& found, const std::vector<std::string>& expected) {
  if (found.empty()) return;  // nothing is told of them
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    const auto layer = [i](const std::vector<std::string>& layers) {
      return i < layers.size() ? "\"" + layers[i] + "\"" : "none";
    };
    if (layer(found) == layer(expected)) continue;
    throw Error(Category::invalid_data, "the checkpoint is of another model: found the layer " +
                                            layer(found) + ", expected " + layer(expected));
  }
}

}  // namespace

void Trainer::save(const std::string& path) {
  Impl& self = *impl_;
  Checkpoint checkpoint;
  for (std::size_t i = 0; i < self.parameters.size(); ++i) {
    checkpoint.parameters.push_back({self.parameters[i].name, self.values()[i]});
  }
  checkpoint.state_names = self.optimizer->state();
  checkpoint.state = self.state();
  checkpoint.count = self.count();
  checkpoint.seed = self.options.seed;
  checkpoint.layers = self.model.description();
  checkpoint.ids = self.ids;
  checkpoint.fit = self.fit;
  if (self.prediction) {
    checkpoint.program = print(*self.prediction);
    checkpoint.input = self.no_rows;
  }
  write_checkpoint(path, std::move(checkpoint));
}

void Trainer::resume(const std::string& path) {
  Impl& self = *impl_;
  Checkpoint checkpoint = read_checkpoint(path);
  try {
    match_parameters(checkpoint, self.parameters);
    const std::vector<std::string> state_names = self.optimizer->state();
    if (checkpoint.state_names != state_names) {
      throw Error(Category::invalid_data,
                  "found the optimizer state " + list_of(checkpoint.state_names) +
                      " in the checkpoint, expected the optimizer's " + list_of(state_names));
    }
    match_layers(checkpoint.layers, self.model.description());
    // So that what is saved before any data is seen can predict as well.
    if (!checkpoint.program.empty()) self.prediction_program(checkpoint.input);
  } catch (const Error& error) {
    throw error.at_location(path);
  }
  Trained trained{{}, std::move(checkpoint.state), checkpoint.count};
  for (NamedTensor& each : checkpoint.parameters) {
    trained.parameters.push_back(std::move(each.tensor));
  }
  // The session of another seed would draw other random numbers; the next data makes a new one.
  if (self.options.seed != checkpoint.seed) self.compiled.reset();
  self.options.seed = checkpoint.seed;
  self.restore(std::move(trained));
  self.fit = std::move(checkpoint.fit);
}

}  // namespace mulgrad
