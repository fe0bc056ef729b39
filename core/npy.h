// npy: one array in NumPy's own file format (numpy.lib.format).
#pragma once

#include <string>
#include <string_view>

#include "core/tensor.h"

namespace mulgrad {

// Reads the content of a file of format version 1 or 2: either byte order, elements in C or Fortran
// order (the tensor is row-major in both cases), every dtype that NumPy shares with mulgrad: all
// but bf16. `name` stands for the file in messages. Throws invalid_data for everything else:
// another version, a header that is no dictionary of descr, fortran_order and shape, too few or too
// many bytes of elements, a bool that is not 0 or 1.
Tensor read_npy(std::string_view bytes, const std::string& name);
// The same of a file; throws io_error naming a file that cannot be read.
Tensor read_npy_file(const std::string& path);

// The content of a file: version 1, C order, little endian. Throws dtype_mismatch for bf16.
std::string write_npy(const Tensor& tensor);
// Replaces the file as write_file does.
void write_npy_file(const std::string& path, const Tensor& tensor);

}  // namespace mulgrad
