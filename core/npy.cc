#include "core/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "core/file.h"

namespace mulgrad {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // of the first element, as NumPy writes it

struct Spelling {
  DType dtype;
  std::string_view text;  // kind and size
};
constexpr std::array<Spelling, 12> kSpellings{{{DType::i1, "b1"},
                                               {DType::i8, "i1"},
                                               {DType::i16, "i2"},
                                               {DType::i32, "i4"},
                                               {DType::i64, "i8"},
                                               {DType::u8, "u1"},
                                               {DType::u16, "u2"},
                                               {DType::u32, "u4"},
                                               {DType::u64, "u8"},
                                               {DType::f16, "f2"},
                                               {DType::f32, "f4"},
                                               {DType::f64, "f8"}}};

[[noreturn]] void bad(const std::string& message) { throw Error(Category::invalid_data, message); }

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// Reads the header, a Python dictionary of three known keys:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  Header read() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = read_string();
      expect(':');
      if (key == "descr" && !header.descr) {
        header.descr = read_string();
      } else if (key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = read_bool();
      } else if (key == "shape" && !header.shape) {
        header.shape = read_shape();
      } else {
        bad("the header has the key '" + key +
            "', expected descr, fortran_order and shape once each");
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_blanks();
    if (!rest_.empty()) fail("the end");
    if (!header.descr || !header.fortran_order || !header.shape) {
      bad("the header lacks one of descr, fortran_order and shape");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    bad("the header goes on with \"" + std::string(rest_.substr(0, 20)) + "\", expected " +
        expected);
  }
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }
  bool accept(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }
  std::string read_string() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    const std::size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) {
      fail("a quoted string (structured dtypes are not read)");
    }
    std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }
  bool read_bool() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view text = value ? "True" : "False";
      if (!rest_.starts_with(text)) continue;
      rest_.remove_prefix(text.size());
      return value;
    }
    fail("True or False");
  }
  std::vector<std::int64_t> read_shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0) fail("a size");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      sizes.push_back(size);
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return sizes;
  }

  std::string_view rest_;
};

// Of a tensor whose axes are in reverse, that with the axes in order. Walks the result in row-major
// order and counts the indices up, so that nothing is divided.
Tensor transposed(const Tensor& reversed) {
  std::vector<std::int64_t> sizes(reversed.sizes().rbegin(), reversed.sizes().rend());
  const auto size = static_cast<std::size_t>(byte_size(reversed.dtype()));
  std::vector<std::size_t> strides;  // of the result's axes in the source, in bytes
  std::size_t stride = size;
  for (const std::int64_t each : sizes) {
    strides.push_back(stride);
    stride *= static_cast<std::size_t>(each);
  }
  Tensor result(reversed.dtype(), sizes);
  std::vector<std::int64_t> index(sizes.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < result.bytes().size(); to += size) {
    std::memcpy(result.bytes().data() + to, reversed.bytes().data() + from, size);
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      from -= strides[axis] * static_cast<std::size_t>(sizes[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

Tensor read(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) bad("found no npy file: it starts otherwise");
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < 2) bad("found the end of the file, expected the format's version");
  const int version = static_cast<unsigned char>(bytes[0]);
  if (version != 1 && version != 2) {
    bad("found the format's version " + std::to_string(version) + ", expected 1 or 2");
  }
  bytes.remove_prefix(2);
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < length_bytes) bad("found the end of the file, expected the header's length");
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i > 0; --i) {
    length = length << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  bytes.remove_prefix(length_bytes);
  if (length > bytes.size()) {
    bad("found a header of " + std::to_string(length) + " bytes, expected one within the " +
        std::to_string(bytes.size()) + " that follow its length");
  }
  const Header header = HeaderReader(bytes.substr(0, length)).read();
  bytes.remove_prefix(length);

  const std::string& descr = *header.descr;
  const char order = descr.empty() ? '\0' : descr[0];
  const auto known = std::ranges::find(
      kSpellings, std::string_view(descr).substr(order == '\0' ? 0 : 1), &Spelling::text);
  const bool is_ordered =
      order == '<' || order == '>' || order == '=' ||
      (order == '|' && known != kSpellings.end() && byte_size(known->dtype) == 1);
  if (known == kSpellings.end() || !is_ordered) {
    bad("found the dtype '" + descr +
        "', expected one of b1, i1 to i8, u1 to u8, f2 to f8 after its byte order");
  }
  std::vector<std::int64_t> sizes = *header.shape;
  if (*header.fortran_order) std::ranges::reverse(sizes);
  Tensor result = decode_tensor(known->dtype, std::move(sizes), bytes,
                                order == '>' ? std::endian::big : std::endian::little);
  return *header.fortran_order ? transposed(result) : result;
}

}  // namespace

Tensor read_npy(std::string_view bytes, const std::string& name) {
  try {
    return read(bytes);
  } catch (const Error& error) {
    throw error.at_location(name);
  }
}

Tensor read_npy_file(const std::string& path) { return read_npy(read_file(path), path); }

std::string write_npy(const Tensor& tensor) {
  const auto known = std::ranges::find(kSpellings, tensor.dtype(), &Spelling::dtype);
  if (known == kSpellings.end()) {
    throw Error(Category::dtype_mismatch, "found a tensor of dtype " +
                                              std::string(to_string(tensor.dtype())) +
                                              ", expected one that npy files have");
  }
  std::string header = "{'descr': '";
  header += byte_size(tensor.dtype()) == 1 ? '|' : '<';
  header += known->text;
  header += "', 'fortran_order': False, 'shape': (";
  for (std::int64_t axis = 0; axis < tensor.rank(); ++axis) {
    if (axis > 0) header += ", ";
    header += std::to_string(tensor.sizes()[static_cast<std::size_t>(axis)]);
  }
  header += tensor.rank() == 1 ? ",), }" : "), }";
  const std::size_t before = kMagic.size() + 4;  // the version and the length
  const std::size_t used = before + header.size() + 1;
  header.append((used + kAlignment - 1) / kAlignment * kAlignment - used, ' ');
  header += '\n';
  if (header.size() > 0xFFFF) {
    throw Error(Category::invalid_argument, "found a tensor of rank " +
                                                std::to_string(tensor.rank()) +
                                                ", more than an npy file's header holds");
  }
  std::string result(kMagic);
  result +=
      {'\1', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  return result + header + encode_tensor(tensor);
}

void write_npy_file(const std::string& path, const Tensor& tensor) {
  write_file(path, write_npy(tensor));
}

}  // namespace mulgrad
