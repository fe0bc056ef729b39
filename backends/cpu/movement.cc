#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/kernels.h"
#include "backends/cpu/strided.h"

namespace mulgrad::cpu {
namespace {

// Copies elements of `width` bytes; array 0 of the loop is the destination.
class StridedCopy {
 public:
  StridedCopy(std::int64_t width, std::span<const std::int64_t> sizes, Strides to, Strides from,
              std::int64_t to_start = 0, std::int64_t from_start = 0)
      : width_(width),
        to_start_(to_start),
        from_start_(from_start),
        loop_(sizes, std::array{std::move(to), std::move(from)}) {}

  void run(std::byte* to, const std::byte* from) {
    loop_.for_each([&](const std::int64_t* at) {
      std::byte* t = to + (to_start_ + at[0]) * width_;
      const std::byte* f = from + (from_start_ + at[1]) * width_;
      switch (width_) {
        case 1:
          return copy_run<std::uint8_t>(t, f);
        case 2:
          return copy_run<std::uint16_t>(t, f);
        case 4:
          return copy_run<std::uint32_t>(t, f);
        default:
          return copy_run<std::uint64_t>(t, f);
      }
    });
  }

 private:
  template <class Word>
  void copy_run(std::byte* to, const std::byte* from) const {
    const std::int64_t n = loop_.length();
    const std::int64_t s = loop_.stride(0);
    const std::int64_t t = loop_.stride(1);
    if (s == 1 && t == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(Word));
      return;
    }
    // Through memcpy, as the elements are of another type than Word.
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(to + i * s * static_cast<std::int64_t>(sizeof(Word)),
                  from + i * t * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
    }
  }

  std::int64_t width_;
  std::int64_t to_start_;
  std::int64_t from_start_;
  StridedLoop loop_;
};

Kernel copy_kernel(StridedCopy copy) {
  return [copy = std::move(copy)](std::span<std::byte* const> results,
                                  std::span<const std::byte* const> operands) mutable {
    copy.run(results[0], operands[0]);
  };
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

std::string size_text(std::span<const std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

Kernel broadcast_kernel(const BroadcastInDim& op, const Type& operand) {
  const std::vector<std::int64_t> from_sizes = operand.shape.sizes();
  const std::vector<std::int64_t> sizes = op.shape.sizes();
  const Strides packed = row_major(from_sizes);
  Strides from(sizes.size());
  for (std::size_t i = 0; i < from_sizes.size(); ++i) {
    if (from_sizes[i] != 1) from[at(op.dims[i])] = packed[i];
  }
  return copy_kernel({byte_size(operand.dtype), sizes, row_major(sizes), std::move(from)});
}

Kernel transpose_kernel(const Axes& permutation, const Type& operand) {
  const std::vector<std::int64_t> from_sizes = operand.shape.sizes();
  const Strides packed = row_major(from_sizes);
  std::vector<std::int64_t> sizes(permutation.size());
  Strides from(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    sizes[i] = from_sizes[at(permutation[i])];
    from[i] = packed[at(permutation[i])];
  }
  return copy_kernel({byte_size(operand.dtype), sizes, row_major(sizes), std::move(from)});
}

Kernel slice_kernel(const Slice& op, const Type& operand, const Type& result) {
  const std::vector<std::int64_t> sizes = result.shape.sizes();
  Strides from = row_major(operand.shape.sizes());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    start += op.start[i] * from[i];
    from[i] *= op.stride[i];
  }
  return copy_kernel(
      {byte_size(operand.dtype), sizes, row_major(sizes), std::move(from), 0, start});
}

Kernel concatenate_kernel(const Concatenate& op, std::span<const Type> operands,
                          const Type& result) {
  const Strides to = row_major(result.shape.sizes());
  std::vector<StridedCopy> copies;
  std::int64_t start = 0;
  for (const Type& operand : operands) {
    const std::vector<std::int64_t> sizes = operand.shape.sizes();
    copies.emplace_back(byte_size(result.dtype), sizes, to, row_major(sizes),
                        start * to[at(op.dimension)]);
    start += sizes[at(op.dimension)];
  }
  return [copies = std::move(copies)](std::span<std::byte* const> results,
                                      std::span<const std::byte* const> parts) mutable {
    for (std::size_t i = 0; i < copies.size(); ++i) copies[i].run(results[0], parts[i]);
  };
}

Kernel pad_kernel(const Pad& op, const Type& operand, const Type& result) {
  const std::vector<std::int64_t> sizes = result.shape.sizes();
  const std::vector<std::int64_t> from_sizes = operand.shape.sizes();
  const std::int64_t width = byte_size(operand.dtype);
  Strides to = row_major(sizes);
  const Strides from = row_major(from_sizes);
  StridedCopy fill(width, sizes, to, Strides(sizes.size()));
  // Operand element i lands at low + i * (interior + 1); those outside of the result are cropped.
  std::vector<std::int64_t> counts;
  std::int64_t to_start = 0;
  std::int64_t from_start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t step = op.interior[i] + 1;
    const std::int64_t first = op.low[i] >= 0 ? 0 : (-op.low[i] + step - 1) / step;
    const std::int64_t room = sizes[i] - 1 - op.low[i];  // of the last element that may land
    const std::int64_t end = room < 0 ? 0 : std::min(from_sizes[i], room / step + 1);
    counts.push_back(std::max<std::int64_t>(end - first, 0));
    to_start += (op.low[i] + first * step) * to[i];
    from_start += first * from[i];
    to[i] *= step;
  }
  StridedCopy place(width, counts, std::move(to), from, to_start, from_start);
  return
      [fill = std::move(fill), place = std::move(place)](
          std::span<std::byte* const> results, std::span<const std::byte* const> operands) mutable {
        fill.run(results[0], operands[1]);
        place.run(results[0], operands[0]);
      };
}

}  // namespace mulgrad::cpu
