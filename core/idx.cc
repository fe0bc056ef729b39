#include "core/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "core/file.h"

namespace mulgrad {
namespace {

struct Code {
  DType dtype;
  unsigned char byte;
};
constexpr std::array<Code, 6> kCodes{{{DType::u8, 0x08},
                                      {DType::i8, 0x09},
                                      {DType::i16, 0x0B},
                                      {DType::i32, 0x0C},
                                      {DType::f32, 0x0D},
                                      {DType::f64, 0x0E}}};

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kSizeBytes = 4;

[[noreturn]] void bad(const std::string& message) { throw Error(Category::invalid_data, message); }

Tensor read(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < kMagicBytes) bad("found the end of the file, expected the magic number");
  const auto code =
      std::ranges::find_if(kCodes, [&](const Code& each) { return each.byte == byte(2); });
  if (byte(0) != 0 || byte(1) != 0 || code == kCodes.end()) {
    const bool is_gzip = byte(0) == 0x1F && byte(1) == 0x8B;
    bad(is_gzip ? "found a gzip file, expected it decompressed"
                : "found no magic number of an IDX file");
  }
  const std::size_t rank = byte(3);
  if (bytes.size() < kMagicBytes + kSizeBytes * rank) {
    bad("found the end of the file, expected " + std::to_string(rank) + " sizes");
  }
  std::vector<std::int64_t> sizes(rank, 0);
  for (std::size_t i = 0; i < kSizeBytes * rank; ++i) {
    sizes[i / kSizeBytes] = sizes[i / kSizeBytes] << 8 | byte(kMagicBytes + i);
  }
  bytes.remove_prefix(kMagicBytes + kSizeBytes * rank);
  return decode_tensor(code->dtype, std::move(sizes), bytes, std::endian::big);
}

}  // namespace

Tensor read_idx(std::string_view bytes, const std::string& name) {
  try {
    return read(bytes);
  } catch (const Error& error) {
    throw error.at_location(name);
  }
}

Tensor read_idx_file(const std::string& path) { return read_idx(read_file(path), path); }

std::string write_idx(const Tensor& tensor) {
  const auto code = std::ranges::find(kCodes, tensor.dtype(), &Code::dtype);
  if (code == kCodes.end()) {
    throw Error(Category::dtype_mismatch, "found a tensor of dtype " +
                                              std::string(to_string(tensor.dtype())) +
                                              ", expected u8, i8, i16, i32, f32 or f64");
  }
  if (tensor.rank() > std::numeric_limits<unsigned char>::max()) {
    throw Error(Category::invalid_argument,
                "found rank " + std::to_string(tensor.rank()) + ", expected at most 255");
  }
  std::string result{'\0', '\0', static_cast<char>(code->byte), static_cast<char>(tensor.rank())};
  for (const std::int64_t size : tensor.sizes()) {
    if (size > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(Category::invalid_argument,
                  "found the size " + std::to_string(size) + ", expected one below 2^32");
    }
    for (int shift = 24; shift >= 0; shift -= 8) result += static_cast<char>(size >> shift);
  }
  return result + encode_tensor(tensor, std::endian::big);
}

void write_idx_file(const std::string& path, const Tensor& tensor) {
  write_file(path, write_idx(tensor));
}

}  // namespace mulgrad
