// The handwritten digits that the examples and tests train on, compiled into the program.
#pragma once

#include <string_view>

namespace mulgrad::examples {

// The text of digits.csv: a header row, then 1,797 rows of 64 pixels 0..16 and a label 0..9.
std::string_view digits_csv();

}  // namespace mulgrad::examples
