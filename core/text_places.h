// Where the nodes of a program stand in the text that it was read from, for messages about them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace mulgrad {

struct PlacedProgram {
  Program program;
  std::vector<std::size_t> offsets;  // of the ops of its nodes, in bytes
};

// parse(), with the places.
PlacedProgram parse_with_places(std::string_view text, const ParseOptions& options = {});

// "line:col" of a byte of the text, as in the locations of errors.
std::string place_in(std::string_view text, std::size_t offset);

}  // namespace mulgrad
