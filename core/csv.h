// Tables of numbers as text: comma-separated rows, an optional header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace mulgrad {

struct Csv {
  std::vector<std::string> header;  // empty, or a name per column
  Tensor values;                    // [rows, columns]
};

// Reads rows of numbers separated by commas; blanks around a number, a byte order mark, "\r\n" and
// a missing last newline are fine, quotes are not read. The first line is a header when one of its
// fields is no number. Numbers are written as Literal::parse takes them for `dtype`, with an
// optional "+", and for floats also inf, infinity and nan; i1 is 0 or 1. The locale plays no part.
// `name` stands for the text in messages. Throws invalid_data at name:line:col for a field that is
// no number of the dtype, a row with more or fewer fields than the first (a truncated last line,
// too), an empty line between rows, and a text without any row.
Csv read_csv(std::string_view text, DType dtype, const std::string& name);

// The same of a file; throws io_error naming a file that cannot be read.
Csv read_csv_file(const std::string& path, DType dtype);

}  // namespace mulgrad
