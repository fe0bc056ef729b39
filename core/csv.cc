#include "core/csv.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>

#include "core/file.h"

namespace mulgrad {
namespace {

struct Field {
  std::string_view text;  // without the blanks around it
  std::size_t column;     // of its first character, from 1
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::vector<Field> split(std::string_view line) {
  std::vector<Field> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    std::size_t first = begin;
    std::size_t last = end;
    while (first < last && is_blank(line[first])) ++first;
    while (last > first && is_blank(line[last - 1])) --last;
    fields.push_back({line.substr(first, last - first), first + 1});
    if (end == line.size()) return fields;
    begin = end + 1;
  }
}

std::optional<Literal> parse_number(DType dtype, std::string_view text) {
  if (dtype == DType::i1) {
    if (text != "0" && text != "1") return std::nullopt;
    return Literal::from_int(dtype, text == "1" ? 1 : 0);
  }
  const bool negative = text.starts_with('-');
  const std::string_view magnitude = text.substr(negative || text.starts_with('+') ? 1 : 0);
  if (magnitude.empty() || magnitude.starts_with('-') || magnitude.starts_with("0x") ||
      magnitude.starts_with("0X")) {
    return std::nullopt;
  }
  if (is_float(dtype)) {
    std::string lower(magnitude);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "inf" || lower == "infinity") return Literal::infinity(dtype, negative);
    if (lower == "nan")
      return Literal::from_double(dtype, std::numeric_limits<double>::quiet_NaN());
    // Fractions without a leading zero: ".5".
    if (magnitude.starts_with('.')) {
      return magnitude.size() > 1 && std::isdigit(static_cast<unsigned char>(magnitude[1])) != 0
                 ? Literal::parse(dtype, (negative ? "-0" : "0") + std::string(magnitude))
                 : std::nullopt;
    }
  }
  return Literal::parse(dtype, negative ? text : magnitude);
}

}  // namespace

Csv read_csv(std::string_view text, DType dtype, const std::string& name) {
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  Csv result;
  std::vector<Literal> values;
  std::size_t columns = 0;  // 0 until the first line is read
  std::int64_t rows = 0;
  const auto fail = [&](std::size_t line, std::size_t column, const std::string& message) {
    throw Error(Category::invalid_data, message, {},
                name + ":" + std::to_string(line) + ":" + std::to_string(column));
  };
  for (std::size_t line_number = 1; !rest.empty(); ++line_number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::vector<Field> fields = split(line);
    if (fields.size() == 1 && fields[0].text.empty()) {
      if (rest.find_first_not_of(" \t\r\n") == std::string_view::npos) break;  // blank lines last
      fail(line_number, 1, "found an empty line, expected a row");
    }
    if (columns != 0 && fields.size() != columns) {
      fail(line_number, line.size() + 1,
           "found " + std::to_string(fields.size()) + " fields, expected the " +
               std::to_string(columns) + " of the first line");
    }
    std::vector<Literal> row;
    for (const Field& field : fields) {
      const std::optional<Literal> value = parse_number(dtype, field.text);
      if (value) {
        row.push_back(*value);
      } else if (columns != 0) {
        fail(line_number, field.column,
             "found \"" + std::string(field.text) + "\", expected a number of dtype " +
                 std::string(to_string(dtype)));
      }
    }
    if (row.size() == fields.size()) {
      values.insert(values.end(), row.begin(), row.end());
      ++rows;
    } else {
      for (const Field& field : fields) result.header.emplace_back(field.text);
    }
    columns = fields.size();
  }
  if (rows == 0) fail(1, 1, "found no row, expected at least one");
  result.values = Tensor(dtype, {rows, static_cast<std::int64_t>(columns)});
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    std::ranges::transform(values, result.values.data<T>().begin(),
                           [](const Literal& value) { return value.as<T>(); });
  });
  return result;
}

Csv read_csv_file(const std::string& path, DType dtype) {
  return read_csv(read_file(path), dtype, path);
}

}  // namespace mulgrad
