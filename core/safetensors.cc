#include "core/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "core/file.h"

namespace mulgrad {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;  // of the first element, reached by blanks after the header
constexpr char kMetadata[] = "__metadata__";

struct Spelling {
  DType dtype;
  const char* text;
};
constexpr std::array<Spelling, 13> kSpellings{{{DType::i1, "BOOL"},
                                               {DType::i8, "I8"},
                                               {DType::i16, "I16"},
                                               {DType::i32, "I32"},
                                               {DType::i64, "I64"},
                                               {DType::u8, "U8"},
                                               {DType::u16, "U16"},
                                               {DType::u32, "U32"},
                                               {DType::u64, "U64"},
                                               {DType::bf16, "BF16"},
                                               {DType::f16, "F16"},
                                               {DType::f32, "F32"},
                                               {DType::f64, "F64"}}};

const char* spelling(DType dtype) {
  return std::ranges::find(kSpellings, dtype, &Spelling::dtype)->text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

[[noreturn]] void bad(const std::string& message, const std::string& tensor = {}) {
  throw Error(Category::invalid_data, message, tensor);
}

// JSON without a key twice in one object, which a plain parse would drop silently.
Json parse_header(std::string_view text) {
  constexpr int kDeepest = 3;  // the header, an entry, its shape
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) bad("the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      bad("the header has the key " + quoted(parsed.get<std::string>()) + " twice");
    }
    return true;
  };
  try {
    Json header = Json::parse(text, check);
    if (!header.is_object()) bad("the header is no JSON object");
    return header;
  } catch (const Json::parse_error& error) {
    bad("the header is no JSON: its byte " + std::to_string(error.byte) + " fits none");
  } catch (const Json::exception&) {
    bad("the header is no JSON: it has a number beyond all ranges");
  }
}

// Throws for a number that is negative, has a fraction or does not fit 63 bits.
std::int64_t read_size(const Json& value, const char* what, const std::string& name) {
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 == 0;
  if (!fits) bad(std::string(what) + ": found " + value.dump() + ", expected a size", name);
  return value.get<std::int64_t>();
}

// What the header says of one tensor.
struct Entry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> sizes;
  std::size_t begin;
  std::size_t end;
};

Entry read_entry(const std::string& name, const Json& value, std::size_t available) {
  const auto field = [&](const char* key) -> const Json& {
    if (!value.contains(key)) bad(std::string("the entry has no ") + quoted(key), name);
    return value.at(key);
  };
  if (!value.is_object()) bad("found an entry that is no JSON object", name);
  if (value.size() != 3) {
    for (const auto& [key, unused] : value.items()) {
      if (key == "dtype" || key == "shape" || key == "data_offsets") continue;
      bad("found " + quoted(key) + ", expected dtype, shape and data_offsets", name);
    }
  }
  const Json& dtype = field("dtype");
  const Json& shape = field("shape");
  const Json& offsets = field("data_offsets");
  const auto known = std::ranges::find_if(kSpellings, [&](const Spelling& each) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == each.text;
  });
  if (known == kSpellings.end()) {
    bad("found the dtype " + dtype.dump() + ", expected one from BOOL to F64 that mulgrad has",
        name);
  }
  if (!shape.is_array()) bad("shape: found " + shape.dump() + ", expected a list of sizes", name);
  Entry entry{name, known->dtype, {}, 0, 0};
  for (const Json& size : shape) entry.sizes.push_back(read_size(size, "shape", name));
  if (!offsets.is_array() || offsets.size() != 2) {
    bad("data_offsets: found " + offsets.dump() + ", expected two offsets", name);
  }
  entry.begin = static_cast<std::size_t>(read_size(offsets[0], "data_offsets", name));
  entry.end = static_cast<std::size_t>(read_size(offsets[1], "data_offsets", name));
  if (entry.begin > entry.end || entry.end > available) {
    bad("data_offsets: found " + offsets.dump() + ", expected ascending ones within the " +
            std::to_string(available) + " bytes of elements",
        name);
  }
  return entry;
}

// Every byte of the elements belongs to exactly one tensor.
void check_layout(std::span<const Entry> entries, std::size_t available) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  std::ranges::stable_sort(order, {},
                           [](const Entry* entry) { return std::pair(entry->begin, entry->end); });
  std::size_t covered = 0;
  const Entry* last = nullptr;
  for (const Entry* entry : order) {
    if (entry->begin != covered) {
      const std::string before =
          last == nullptr ? "the first byte" : "the end of " + quoted(last->name);
      bad("found its elements at offset " + std::to_string(entry->begin) + ", expected " +
              std::to_string(covered) + ", " + before +
              (entry->begin < covered ? ": they overlap" : ": a hole lies between"),
          entry->name);
    }
    covered = entry->end;
    last = entry;
  }
  if (covered != available) {
    bad("found " + std::to_string(available - covered) + " bytes after " +
            (last == nullptr ? "a header without tensors" : "the last tensor's elements") +
            ", expected the end",
        last == nullptr ? std::string() : last->name);
  }
}

Safetensors read(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) {
    bad("found " + std::to_string(bytes.size()) + " bytes, expected the header's length in 8");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i > 0; --i) {
    length = length << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  bytes.remove_prefix(kLengthBytes);
  if (length > bytes.size()) {
    bad("found a header of " + std::to_string(length) +
        " bytes, expected one that ends within the " + std::to_string(bytes.size()) +
        " that follow its length");
  }
  const Json header = parse_header(bytes.substr(0, length));
  bytes.remove_prefix(length);

  Safetensors result;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key != kMetadata) {
      entries.push_back(read_entry(key, value, bytes.size()));
      continue;
    }
    if (!value.is_object()) bad("found metadata that is no JSON object");
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string())
        bad("metadata " + quoted(name) + ": found " + text.dump() + ", expected text");
      result.metadata.emplace(name, text.get<std::string>());
    }
  }
  // The sizes against the offsets first: an entry that lies about itself is named, not its
  // neighbour.
  for (const Entry& entry : entries) {
    try {
      result.tensors.push_back(
          {entry.name, decode_tensor(entry.dtype, entry.sizes,
                                     bytes.substr(entry.begin, entry.end - entry.begin))});
    } catch (const Error& error) {
      throw error.at_node(entry.name);
    }
  }
  check_layout(entries, bytes.size());
  return result;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &found->tensor;
}

Safetensors read_safetensors(std::string_view bytes, const std::string& name) {
  try {
    return read(bytes);
  } catch (const Error& error) {
    throw error.at_location(name);
  }
}

Safetensors read_safetensors_file(const std::string& path) {
  return read_safetensors(read_file(path), path);
}

std::string write_safetensors(const Safetensors& content) {
  std::vector<std::size_t> order(content.tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) {
    return byte_size(content.tensors[i].tensor.dtype());
  });
  std::vector<std::size_t> begins(order.size());
  std::size_t total = 0;
  for (const std::size_t i : order) {
    begins[i] = total;
    total += content.tensors[i].tensor.bytes().size();
  }

  Json header = Json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  std::set<std::string_view> names{kMetadata};
  for (std::size_t i = 0; i < content.tensors.size(); ++i) {
    const auto& [name, tensor] = content.tensors[i];
    if (!names.insert(name).second) {
      throw Error(Category::invalid_argument,
                  "found the name " + quoted(name) + " twice or reserved, expected another", name);
    }
    // Written in place: a list of pairs as an initialiser would become an array for some values.
    Json& entry = header[name];
    entry["dtype"] = spelling(tensor.dtype());
    entry["shape"] = std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end());
    entry["data_offsets"] = std::array{begins[i], begins[i] + tensor.bytes().size()};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw Error(Category::invalid_argument, "found a name or metadata that is no UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');

  std::string result;
  result.reserve(kLengthBytes + text.size() + total);
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    result.push_back(static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i)));
  }
  result += text;
  for (const std::size_t i : order) result += encode_tensor(content.tensors[i].tensor);
  return result;
}

void write_safetensors_file(const std::string& path, const Safetensors& content) {
  write_file(path, write_safetensors(content));
}

}  // namespace mulgrad
