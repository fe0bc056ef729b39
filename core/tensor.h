// Dense host tensors: a dtype, static sizes and row-major elements. A value: copies are deep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/literal.h"
#include "core/type.h"

namespace mulgrad {

class Tensor {
 public:
  Tensor() : Tensor(DType::f32, {0}) {}
  // Filled with zeros. Throws invalid_argument for a negative size, and for more bytes than fit 63
  // bits or than there is memory for.
  Tensor(DType dtype, std::vector<std::int64_t> sizes);
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  // The tensor that was moved from is as a default one.
  Tensor(Tensor&& other) noexcept : Tensor() { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Tensor() = default;

  // Row-major elements; throws shape_mismatch when their number is not the product of the sizes.
  template <class T>
  static Tensor of(std::vector<std::int64_t> sizes, std::span<const T> values);
  template <class T>
  static Tensor of(std::vector<std::int64_t> sizes, std::initializer_list<T> values) {
    return of(std::move(sizes), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor of(std::vector<std::int64_t> sizes, const std::vector<T>& values) {
    return of(std::move(sizes), std::span<const T>(values));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, {value});
  }
  // Every element is `value`.
  static Tensor filled(const Literal& value, std::vector<std::int64_t> sizes);
  // Elements converted from double, each rounded once (see Literal::from_double).
  static Tensor from_doubles(DType dtype, std::vector<std::int64_t> sizes,
                             std::span<const double> values);

  DType dtype() const { return dtype_; }
  std::span<const std::int64_t> sizes() const { return sizes_; }
  std::int64_t rank() const { return std::ssize(sizes_); }
  std::int64_t elements() const { return elements_; }
  Type type() const { return {dtype_, Shape::of(sizes_)}; }

  // The elements; aborts when T is not the storage type of dtype().
  template <class T>
  std::span<T> data();
  template <class T>
  std::span<const T> data() const;
  std::span<std::byte> bytes() { return {reinterpret_cast<std::byte*>(storage_.data()), size_}; }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(storage_.data()), size_};
  }
  // Throws invalid_argument for an index outside [0, elements()).
  Literal element(std::int64_t index) const;
  std::vector<double> to_doubles() const;

  // Equal dtype, sizes and bits: NaN equals itself, -0 differs from 0.
  bool operator==(const Tensor& other) const;

 private:
  // Vector kernels are fastest on whole lines of the cache.
  struct alignas(64) CacheLine {
    std::byte bytes[64];
  };
  void swap(Tensor& other) noexcept;
  DType dtype_;
  std::vector<std::int64_t> sizes_;
  std::int64_t elements_;
  std::size_t size_;  // in bytes
  std::vector<CacheLine> storage_;
};

template <class T>
std::span<T> Tensor::data() {
  INTERNAL_CHECK(dtype_of<T> == dtype_);
  return {reinterpret_cast<T*>(storage_.data()), static_cast<std::size_t>(elements_)};
}

template <class T>
std::span<const T> Tensor::data() const {
  INTERNAL_CHECK(dtype_of<T> == dtype_);
  return {reinterpret_cast<const T*>(storage_.data()), static_cast<std::size_t>(elements_)};
}

template <class T>
Tensor Tensor::of(std::vector<std::int64_t> sizes, std::span<const T> values) {
  Tensor result(dtype_of<T>, std::move(sizes));
  if (std::ssize(values) != result.elements_) {
    throw Error(Category::shape_mismatch, "found " + std::to_string(values.size()) +
                                              " values, expected " +
                                              std::to_string(result.elements_));
  }
  std::copy(values.begin(), values.end(), result.data<T>().begin());
  return result;
}

}  // namespace mulgrad
