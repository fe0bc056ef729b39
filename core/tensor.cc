#include "core/tensor.h"

#include <cstring>
#include <exception>
#include <utility>

namespace mulgrad {
namespace {

std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> sizes) {
  return (Shape::of(sizes).elements() * Dim(byte_size(dtype))).size();
}

template <class Line>
std::vector<Line> zeroed(std::size_t bytes) {
  try {
    return std::vector<Line>((bytes + sizeof(Line) - 1) / sizeof(Line));
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw Error(Category::invalid_argument,
                "found a tensor of " + std::to_string(bytes) + " bytes, more than there is memory");
  }
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<std::int64_t> sizes)
    : dtype_(dtype),
      sizes_(std::move(sizes)),
      elements_(checked_bytes(dtype, sizes_) / byte_size(dtype)),
      size_(static_cast<std::size_t>(elements_ * byte_size(dtype))),
      storage_(zeroed<CacheLine>(size_)) {}

void Tensor::swap(Tensor& other) noexcept {
  std::swap(dtype_, other.dtype_);
  sizes_.swap(other.sizes_);
  std::swap(elements_, other.elements_);
  std::swap(size_, other.size_);
  storage_.swap(other.storage_);
}

Tensor Tensor::filled(const Literal& value, std::vector<std::int64_t> sizes) {
  Tensor result(value.dtype, std::move(sizes));
  dispatch(value.dtype, [&]<class T>(std::type_identity<T>) {
    std::ranges::fill(result.data<T>(), value.as<T>());
  });
  return result;
}

Tensor Tensor::from_doubles(DType dtype, std::vector<std::int64_t> sizes,
                            std::span<const double> values) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    Tensor result(dtype, sizes);
    if (std::ssize(values) != result.elements_) {
      throw Error(Category::shape_mismatch, "found " + std::to_string(values.size()) +
                                                " values, expected " +
                                                std::to_string(result.elements_));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      result.data<T>()[i] = Literal::from_double(dtype, values[i]).template as<T>();
    }
    return result;
  });
}

Literal Tensor::element(std::int64_t index) const {
  if (index < 0 || index >= elements_) {
    throw Error(Category::invalid_argument, "found the element " + std::to_string(index) +
                                                ", expected one in [0, " +
                                                std::to_string(elements_) + ")");
  }
  return dispatch(dtype_, [&]<class T>(std::type_identity<T>) {
    return Literal::of(data<T>()[static_cast<std::size_t>(index)]);
  });
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(elements_));
  dispatch(dtype_, [&]<class T>(std::type_identity<T>) {
    for (const T& value : data<T>()) result.push_back(static_cast<double>(value));
  });
  return result;
}

bool Tensor::operator==(const Tensor& other) const {
  return dtype_ == other.dtype_ && sizes_ == other.sizes_ &&
         (size_ == 0 || std::memcmp(storage_.data(), other.storage_.data(), size_) == 0);
}

}  // namespace mulgrad
