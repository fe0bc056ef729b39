// Every pass of the library by its name, for those who choose passes at run time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rewrite/pass.h"
#include "lowering/target.h"

namespace mulgrad {

struct NamedPass {
  std::string description;  // one line
  Pass pass;                // its name is the one to ask for
};

// In the order in which default_pipeline uses them. `target` is what those are made for that bring
// a program to a device.
std::vector<NamedPass> all_passes(const Target& target);

// The pass of that name, or nothing.
std::optional<Pass> pass_by_name(std::string_view name, const Target& target);

}  // namespace mulgrad
