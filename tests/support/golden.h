// The committed goldens of tests/goldens: numbers from elsewhere, and texts of our own.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulgrad::testing {

// A JSON file, by its path below tests/goldens; throws where it cannot be read.
nlohmann::json read_golden(const std::string& path);

// Whether `text` is the content of the file at `path` below tests/goldens; the first different line
// is named. With MULGRAD_UPDATE_GOLDENS=1 in the environment the file is written instead.
::testing::AssertionResult matches_golden(std::string_view text, const std::string& path);

}  // namespace mulgrad::testing
