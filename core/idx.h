// IDX: one array as the MNIST files hold it (http://yann.lecun.com/exdb/mnist): two zero bytes, a
// byte for the dtype, a byte for the rank, the sizes as big-endian u32, the elements, big endian.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor.h"

namespace mulgrad {

// Reads the content of a file; its dtypes are u8, i8, i16, i32, f32 and f64. `name` stands for the
// file in messages. Throws invalid_data for another magic number (compressed files are not read),
// and for too few or too many bytes.
Tensor read_idx(std::string_view bytes, const std::string& name);
// The same of a file; throws io_error naming a file that cannot be read.
Tensor read_idx_file(const std::string& path);

// The content of a file. Throws dtype_mismatch for a dtype that IDX has not, invalid_argument for a
// rank above 255 or a size of 2^32 or more.
std::string write_idx(const Tensor& tensor);
// Replaces the file as write_file does.
void write_idx_file(const std::string& path, const Tensor& tensor);

}  // namespace mulgrad
