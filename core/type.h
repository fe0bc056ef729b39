// Sizes, shapes and tensor types. A size is a number or a symbolic monomial such as 12*B.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace mulgrad {

// Values for symbols, as `bind` takes them.
using Bindings = std::map<std::string, std::int64_t>;

// A size >= 0, or a coefficient > 0 times a product of named symbols. Equal monomials are equal; a
// symbol and a number never are.
class Dim {
 public:
  Dim(std::int64_t size = 0);           // NOLINT: sizes convert; throws invalid_argument below 0
  static Dim symbol(std::string name);  // throws invalid_name outside [A-Za-z_][A-Za-z0-9_]*

  bool is_static() const { return symbols_.empty(); }
  // The number; throws unresolved_symbolic_shape for a symbolic size.
  std::int64_t size() const;
  std::int64_t coefficient() const { return coefficient_; }
  std::span<const std::string> symbols() const { return symbols_; }  // sorted, with repetitions

  // Throws invalid_argument when the coefficient leaves 63 bits. Zero times a symbol is 0.
  Dim operator*(const Dim& other) const;
  Dim& operator*=(const Dim& other);
  bool operator==(const Dim&) const = default;

  // Replaces every symbol that has a binding; throws invalid_argument for a negative value.
  Dim bind(const Bindings& bindings) const;
  // "5", "[B]", "[12*B]".
  std::string to_string() const;

 private:
  std::int64_t coefficient_;
  std::vector<std::string> symbols_;
};

// The sizes of a tensor, outermost first. Rank 0 is a scalar. Copies share the sizes until one of
// them changes: most values of a program are shaped like what they are computed from.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : Shape(std::vector<Dim>(dims)) {}
  explicit Shape(std::vector<Dim> dims);
  static Shape of(std::span<const std::int64_t> sizes);

  std::int64_t rank() const { return std::ssize(dims()); }
  const Dim& operator[](std::int64_t axis) const { return dims()[static_cast<std::size_t>(axis)]; }
  Dim& operator[](std::int64_t axis) { return own()[static_cast<std::size_t>(axis)]; }
  auto begin() const { return dims().begin(); }
  auto end() const { return dims().end(); }
  std::span<const Dim> dims() const {
    return dims_ == nullptr ? std::span<const Dim>() : std::span<const Dim>(*dims_);
  }
  void push_back(Dim dim) { own().push_back(std::move(dim)); }

  bool is_static() const;
  // The sizes as numbers; throws unresolved_symbolic_shape.
  std::vector<std::int64_t> sizes() const;
  // The number of elements, symbolic when a size is; throws invalid_argument on overflow.
  Dim elements() const;
  Shape bind(const Bindings& bindings) const;
  bool operator==(const Shape& other) const {
    return dims_ == other.dims_ || std::ranges::equal(dims(), other.dims());
  }
  // "[3, 5]", for messages.
  std::string to_string() const;

 private:
  std::vector<Dim>& own();                  // shared no longer
  std::shared_ptr<std::vector<Dim>> dims_;  // may be null for rank 0
};

struct Type {
  DType dtype = DType::f32;
  Shape shape;

  std::int64_t rank() const { return shape.rank(); }
  bool operator==(const Type&) const = default;
  // "tensor<3x[B]xf32>", as in the text form.
  std::string to_string() const;
};

}  // namespace mulgrad
