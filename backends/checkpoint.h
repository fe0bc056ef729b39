// Checkpoints: all that a training run is between two steps, in one safetensors file.
//   parameter/<name>           a parameter
//   state/<name>/<state>       its optimizer state
//   best/<name>                the parameter after the best epoch so far, where fit() keeps it
//   best_state/<name>/<state>  its optimizer state then
//   input                      no rows of the model's input, for their type; where data was seen
//   fit/losses                 f64 [steps, 2]: loss and rows of each step of the epoch in progress
//   fit/reports                f64 [epochs, 10]: the fields of the reports, NaN where there is none
// The metadata are "mulgrad.checkpoint" (the version, "1") and, as decimal text, "count", "seed",
// "epochs_done", "rows", "best_epoch", "stale_epochs"; "best_count", the count after the best
// epoch, where that is kept; "best_value" as a C99 hexadecimal float; "state", the names of the
// state, a line each; "layers", Layer::description() of the model, which files of older versions
// lack; "program", the model as it predicts, in the text form; "ids", their number, where the input
// holds ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/report.h"
#include "core/safetensors.h"

namespace mulgrad {

// What steps change.
struct Trained {
  std::vector<Tensor> parameters;
  std::vector<std::vector<Tensor>> state;  // per parameter
  std::int64_t count = 0;                  // steps done
};

// How far fit() has come.
struct FitState {
  std::int64_t epochs_done = 0;
  // Of the epoch in progress: its rows, and each of its steps.
  std::int64_t rows = 0;  // 0 before the first step
  std::vector<PartMean> losses;
  std::vector<EpochReport> reports;  // one per epoch done
  // The best epoch so far, where early stopping looks for it.
  std::int64_t best_epoch = 0;  // 0 for none
  double best_value = 0;
  Trained best;                   // after it, where that is to be restored; else empty
  std::int64_t stale_epochs = 0;  // since then, or since it is looked for
};

struct Checkpoint {
  std::vector<NamedTensor> parameters;
  std::vector<std::string> state_names;
  std::vector<std::vector<Tensor>> state;  // per parameter, a tensor per name
  std::int64_t count = 0;                  // steps done
  std::uint64_t seed = 0;                  // of the shuffles
  std::vector<std::string> layers;         // Layer::description(); empty where it is not told
  std::string program;                     // empty where no data had been seen
  Tensor input;                            // what the program takes: [0, ...] rows
  std::optional<std::int64_t> ids;         // above the integers of the input, where they are ids
  FitState fit;
};

Safetensors to_safetensors(Checkpoint checkpoint);
// Throws invalid_data naming the entry that is missing or malformed.
Checkpoint to_checkpoint(Safetensors content);

// Replaces the file as write_file does: the previous or the new checkpoint is there, whole.
void write_checkpoint(const std::string& path, Checkpoint checkpoint);
// Throws io_error for a file that cannot be read, invalid_data for one that is no checkpoint.
Checkpoint read_checkpoint(const std::string& path);

}  // namespace mulgrad
