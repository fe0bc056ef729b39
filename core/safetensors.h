// safetensors: named tensors and text metadata in one file, readable from many languages. The
// layout is that of https://github.com/huggingface/safetensors: the header's length as a
// little-endian u64, the header in JSON, the elements.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace mulgrad {

struct NamedTensor {
  std::string name;
  Tensor tensor;

  bool operator==(const NamedTensor&) const = default;
};

struct Safetensors {
  std::vector<NamedTensor> tensors;  // with distinct names, in the order of the header
  std::map<std::string, std::string> metadata;

  const Tensor* find(std::string_view name) const;  // null where there is none
  bool operator==(const Safetensors&) const = default;
};

// Reads the content of a file; elements need no alignment, and there may be no tensor at all.
// `name` stands for the file in messages. Throws invalid_data, naming the tensor where one is
// concerned: a header that is no JSON, ends behind the file, has a key twice or an entry of another
// form; a dtype that mulgrad has not; offsets that are out of order or of range or not as long as
// dtype and shape ask for; tensors that overlap or leave a hole; bytes behind the last one.
Safetensors read_safetensors(std::string_view bytes, const std::string& name);
// The same of a file; throws io_error naming a file that cannot be read.
Safetensors read_safetensors_file(const std::string& path);

// The content of a file. The header lists the tensors in their order; the elements follow with the
// widest dtypes first, so that all are aligned. read_safetensors(write_safetensors(s)) == s. Throws
// invalid_argument for a name that is used twice or reserved ("__metadata__"), and for text that is
// no UTF-8.
std::string write_safetensors(const Safetensors& content);
// Replaces the file as write_file does.
void write_safetensors_file(const std::string& path, const Safetensors& content);

}  // namespace mulgrad
