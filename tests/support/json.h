// Reads the committed goldens of tests/goldens.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace mulgrad::testing {

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(MULGRAD_SOURCE_DIR "/tests/goldens/" + name);
  return nlohmann::json::parse(file);  // throws for a missing file too
}

// The numbers of a JSON array, in order.
inline std::vector<double> numbers(const nlohmann::json& array) {
  return array.get<std::vector<double>>();
}

}  // namespace mulgrad::testing
