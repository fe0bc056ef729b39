#include "backends/cpu/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"

namespace mulgrad::cpu {
namespace {

enum class Form : std::uint8_t { plain, transposed, padded, padded_transposed };
constexpr Form kForms[] = {Form::plain, Form::transposed, Form::padded, Form::padded_transposed};

MatrixLayout layout_of(Form form, std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  const bool transposed = form == Form::transposed || form == Form::padded_transposed;
  const std::int64_t padding = form == Form::plain || form == Form::transposed ? 0 : 3;
  const std::int64_t stride = (transposed ? rows : columns) + padding;
  const std::int64_t all = stride * (transposed ? columns : rows);
  return {std::vector(batches > 0 ? 1 : 0, all), transposed ? 1 : stride, transposed ? stride : 1};
}

// Memory of a matrix or a batch of them, from the layout. What lies between is NaN.
template <class T>
class Matrices {
 public:
  Matrices(const MatrixLayout& layout, std::int64_t rows, std::int64_t columns,
           std::int64_t batches)
      : layout_(layout), rows_(rows), columns_(columns), batches_(batches) {
    const std::int64_t last = std::max<std::int64_t>(rows - 1, 0) * layout.row_stride +
                              std::max<std::int64_t>(columns - 1, 0) * layout.column_stride;
    const std::int64_t batch = layout.batch_strides.empty() ? 0 : layout.batch_strides[0];
    data_.assign(static_cast<std::size_t>((batches - 1) * batch + last + 1),
                 std::numeric_limits<T>::quiet_NaN());
  }

  T& at(std::int64_t batch, std::int64_t row, std::int64_t column) {
    const std::int64_t stride = layout_.batch_strides.empty() ? 0 : layout_.batch_strides[0];
    return data_[static_cast<std::size_t>(batch * stride + row * layout_.row_stride +
                                          column * layout_.column_stride)];
  }
  void fill(int seed) {
    std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761U + 1;
    for (std::int64_t b = 0; b < batches_; ++b) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t j = 0; j < columns_; ++j) {
          state = state * 1664525U + 1013904223U;
          at(b, i, j) = static_cast<T>(state >> 8) / static_cast<T>(1 << 23) - 1;
        }
      }
    }
  }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data_.data()); }
  const std::vector<T>& data() const { return data_; }

 private:
  MatrixLayout layout_;
  std::int64_t rows_, columns_, batches_;
  std::vector<T> data_;
};

template <class T>
constexpr DType kDType = sizeof(T) == 4 ? DType::f32 : DType::f64;

// Runs the product over NaN (overwrite) or over values (add) and compares with a plain loop in
// double; returns the bits of the result's memory.
template <class T>
std::vector<T> check(const ProductSpec& spec, int threads) {
  const std::int64_t batches = spec.batch.empty() ? 1 : spec.batch[0];
  Matrices<T> a(spec.lhs, spec.m, spec.k, batches);
  Matrices<T> b(spec.rhs, spec.k, spec.n, batches);
  Matrices<T> c(spec.result, spec.m, spec.n, batches);
  a.fill(1);
  b.fill(2);
  if (spec.write != ProductWrite::overwrite) c.fill(3);
  Matrices<T> before = c;
  const T s = -2;
  const std::byte* operands[] = {a.bytes(), b.bytes(), reinterpret_cast<const std::byte*>(&s)};
  std::byte* results[] = {c.bytes()};
  const std::size_t count = spec.write == ProductWrite::add_scaled ? 3 : 2;
  const Kernel kernel = product_kernel(spec, std::make_shared<ThreadPool>(threads));
  kernel(results, std::span(operands, count));
  const double scale = spec.scale * (spec.write == ProductWrite::add_scaled ? s : 1);
  double worst = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (std::int64_t i = 0; i < spec.m; ++i) {
      for (std::int64_t j = 0; j < spec.n; ++j) {
        double sum = spec.write == ProductWrite::overwrite ? 0 : before.at(batch, i, j);
        double size = std::abs(sum);
        for (std::int64_t p = 0; p < spec.k; ++p) {
          const double term = scale * a.at(batch, i, p) * b.at(batch, p, j);
          sum += term;
          size += std::abs(term);
        }
        const double error = std::abs(c.at(batch, i, j) - sum);
        if (std::isnan(error)) return ADD_FAILURE() << "NaN at " << i << ", " << j, c.data();
        worst = std::max(worst, size == 0 ? error : error / size);
        // Only its own elements may be written.
        before.at(batch, i, j) = c.at(batch, i, j);
      }
    }
  }
  EXPECT_LE(worst, sizeof(T) == 4 ? 1e-6 : 1e-14);
  EXPECT_EQ(std::memcmp(c.bytes(), before.bytes(), c.data().size() * sizeof(T)), 0)
      << "wrote outside of the result";
  return c.data();
}

struct Sizes {
  std::int64_t m, n, k;
};

// Every form, every write and both dtypes at each size; NaN lies wherever a product may not look.
TEST(Product, AllFormsOfManySizes_AgreeWithAPlainLoop) {
  const Sizes table[] = {{0, 3, 2},    {3, 0, 2},    {3, 4, 0},    {1, 1, 0},    {1, 1, 1},
                         {1, 7, 5},    {7, 1, 5},    {1, 40, 33},  {40, 1, 33},  {4, 8, 2},
                         {4, 2, 8},    {5, 9, 1},    {33, 17, 1},  {1, 1, 300},  {13, 10, 37},
                         {32, 10, 6},  {29, 33, 41}, {70, 65, 64}, {50, 100, 3}, {2, 3, 129},
                         {3, 130, 20}, {64, 16, 9}};
  for (const Sizes& size : table) {
    for (const Form lhs : kForms) {
      for (const Form rhs : kForms) {
        for (const auto write :
             {ProductWrite::overwrite, ProductWrite::add, ProductWrite::add_scaled}) {
          for (const std::int64_t batches : {0, 3}) {
            ProductSpec spec;
            if (batches > 0) spec.batch = {batches};
            spec.m = size.m;
            spec.n = size.n;
            spec.k = size.k;
            spec.lhs = layout_of(lhs, size.m, size.k, batches);
            spec.rhs = layout_of(rhs, size.k, size.n, batches);
            spec.result = layout_of(lhs == Form::padded ? Form::padded : Form::plain, size.m,
                                    size.n, batches);
            spec.write = write;
            spec.scale = write == ProductWrite::overwrite ? 1 : 0.5;
            SCOPED_TRACE(product_name(spec) + " lhs " + std::to_string(static_cast<int>(lhs)) +
                         " rhs " + std::to_string(static_cast<int>(rhs)));
            check<float>(spec, 1);
            spec.dtype = DType::f64;
            check<double>(spec, 1);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mulgrad::cpu
