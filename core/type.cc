#include "core/type.h"

#include <algorithm>
#include <cctype>

namespace mulgrad {
namespace {

bool is_symbol_name(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) != 0 || c == '_'); });
}

}  // namespace

Dim::Dim(std::int64_t size) : coefficient_(size) {
  if (size < 0) {
    throw Error(Category::invalid_argument,
                "found size " + std::to_string(size) + ", expected a size >= 0");
  }
}

Dim Dim::symbol(std::string name) {
  if (!is_symbol_name(name)) {
    throw Error(Category::invalid_name,
                "found symbol \"" + name + "\", expected [A-Za-z_][A-Za-z0-9_]*");
  }
  Dim result(1);
  result.symbols_.push_back(std::move(name));
  return result;
}

std::int64_t Dim::size() const {
  if (!is_static()) {
    throw Error(
        Category::unresolved_symbolic_shape,
        "found the symbolic size " + to_string() + " where a number is needed; bind it first");
  }
  return coefficient_;
}

Dim Dim::operator*(const Dim& other) const {
  Dim result = *this;
  return result *= other;
}

Dim& Dim::operator*=(const Dim& other) {
  std::int64_t coefficient = 0;
  if (__builtin_mul_overflow(coefficient_, other.coefficient_, &coefficient)) {
    throw Error(Category::invalid_argument,
                "the product " + to_string() + " * " + other.to_string() + " leaves 63 bits");
  }
  coefficient_ = coefficient;
  if (coefficient == 0) {
    symbols_.clear();
  } else if (!other.is_static()) {
    std::vector<std::string> symbols;
    std::ranges::merge(symbols_, other.symbols_, std::back_inserter(symbols));
    symbols_ = std::move(symbols);
  }
  return *this;
}

Dim Dim::bind(const Bindings& bindings) const {
  if (is_static()) return *this;
  Dim result(coefficient_);
  for (const std::string& name : symbols_) {
    const auto found = bindings.find(name);
    result = result * (found == bindings.end() ? symbol(name) : Dim(found->second));
  }
  return result;
}

std::string Dim::to_string() const {
  if (is_static()) return std::to_string(coefficient_);
  std::string text = "[";
  if (coefficient_ != 1) text += std::to_string(coefficient_) + "*";
  for (std::size_t i = 0; i < symbols_.size(); ++i) text += (i > 0 ? "*" : "") + symbols_[i];
  return text + "]";
}

Shape::Shape(std::vector<Dim> dims) {
  if (!dims.empty()) dims_ = std::make_shared<std::vector<Dim>>(std::move(dims));
}

Shape Shape::of(std::span<const std::int64_t> sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

std::vector<Dim>& Shape::own() {
  if (dims_ == nullptr || dims_.use_count() > 1) {
    dims_ = std::make_shared<std::vector<Dim>>(begin(), end());
  }
  return *dims_;
}

bool Shape::is_static() const {
  return std::all_of(begin(), end(), [](const Dim& dim) { return dim.is_static(); });
}

std::vector<std::int64_t> Shape::sizes() const {
  std::vector<std::int64_t> result;
  result.reserve(dims().size());
  for (const Dim& dim : *this) result.push_back(dim.size());
  return result;
}

Dim Shape::elements() const {
  // A zero size makes the count 0 whatever the others are, also where their product overflows.
  Dim result(1);
  for (const Dim& dim : *this) {
    if (dim.coefficient() == 0) return Dim(0);
  }
  for (const Dim& dim : *this) result *= dim;
  return result;
}

Shape Shape::bind(const Bindings& bindings) const {
  if (is_static()) return *this;
  std::vector<Dim> result;
  for (const Dim& dim : *this) result.push_back(dim.bind(bindings));
  return Shape(std::move(result));
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (std::int64_t i = 0; i < rank(); ++i) text += (i > 0 ? ", " : "") + (*this)[i].to_string();
  return text + "]";
}

std::string Type::to_string() const {
  std::string text = "tensor<";
  for (const Dim& dim : shape) text += dim.to_string() + "x";
  return text + std::string(type_spelling(dtype)) + ">";
}

}  // namespace mulgrad
