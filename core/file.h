// Files as bytes, and tensors as the bytes of a file.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace mulgrad {

// All bytes of a file. Throws io_error naming a file that cannot be read.
std::string read_file(const std::string& path);

// Replaces the file at `path`, or makes it, so that whoever reads it, also after a crash or a loss
// of power, finds either what was there before or all of `bytes`: they are written to
// "<path>.tmp", flushed to the device, and renamed; the folder is flushed last. Writers of one path
// wait for each other; a writer that was killed leaves the .tmp file, and the next one takes it
// over. Throws io_error naming the file and the system's reason; the old file is then still there.
void write_file(const std::string& path, std::string_view bytes);

// The tensor whose row-major elements these are, in the given byte order. Throws invalid_data when
// the number of bytes is not that of the sizes, a size is negative or their product does not fit 63
// bits (nothing is allocated before), and for an i1 element other than 0 or 1. The errors have no
// place yet: see Error::at_node, Error::at_location.
Tensor decode_tensor(DType dtype, std::vector<std::int64_t> sizes, std::string_view bytes,
                     std::endian order = std::endian::little);
// The row-major elements in the given byte order.
std::string encode_tensor(const Tensor& tensor, std::endian order = std::endian::little);

}  // namespace mulgrad
