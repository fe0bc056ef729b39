#include "backends/cpu/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/blas.h"
#include "core/error.h"
#include "tests/support/instruction_sets.h"

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

constexpr double kScalar = -2;  // operand 2 of add_scaled

std::shared_ptr<ThreadPool> pool(int threads) {
  static const std::shared_ptr<ThreadPool> pools[] = {std::make_shared<ThreadPool>(1),
                                                      std::make_shared<ThreadPool>(2),
                                                      std::make_shared<ThreadPool>(3)};
  return pools[threads - 1];
}

// The operands of a product, its result over NaN (overwrite) or over values (add).
template <class T>
struct Operands {
  explicit Operands(const ProductSpec& spec)
      : batches(spec.batch.empty() ? 1 : spec.batch[0]),
        a(spec.lhs, spec.m, spec.k, batches),
        b(spec.rhs, spec.k, spec.n, batches),
        c(spec.result, spec.m, spec.n, batches),
        bias({{}, spec.n, 1}, 1, spec.n, 1),
        gate(spec.result, spec.m, spec.n, batches) {
    a.fill(1);
    b.fill(2);
    if (spec.write != ProductWrite::overwrite) c.fill(3);
    bias.fill(4);
    gate.fill(5);
  }

  void run(const ProductSpec& spec, int threads) {
    const T s = static_cast<T>(kScalar);
    std::vector<const std::byte*> operands{a.bytes(), b.bytes()};
    if (spec.write == ProductWrite::add_scaled) {
      operands.push_back(reinterpret_cast<const std::byte*>(&s));
    }
    if (spec.bias) operands.push_back(bias.bytes());
    if (spec.gate) operands.push_back(gate.bytes());
    std::byte* results[] = {c.bytes()};
    product_kernel(spec, pool(threads))(results, operands);
  }

  std::int64_t batches;
  Matrices<T> a, b, c, bias, gate;
};

// For results without padding, in which NaN would equal nothing.
template <class T>
std::vector<T> run(const ProductSpec& spec, int threads) {
  Operands<T> operands(spec);
  operands.run(spec, threads);
  return operands.c.data();
}

// Compares with a plain loop in double; returns the result's memory.
template <class T>
std::vector<T> check(const ProductSpec& spec, int threads) {
  Operands<T> values(spec);
  auto& [batches, a, b, c, bias, gate] = values;
  Matrices<T> before = c;
  values.run(spec, threads);
  const double scale = spec.scale * (spec.write == ProductWrite::add_scaled ? kScalar : 1);
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
        if (spec.bias) {
          sum += bias.at(0, 0, j);
          size += std::abs(bias.at(0, 0, j));
        }
        if (spec.relu) sum = std::max(sum, 0.0);
        if (spec.gate && gate.at(batch, i, j) <= 0) sum = 0;
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

// Every form, every write, with and without a batch, in both dtypes, at sizes for every routine and
// height of tile; NaN lies wherever a product may not look.
TEST(Product, AllFormsOfManySizes_AgreeWithAPlainLoop) {
  const Sizes table[] = {
      {0, 3, 2},    {3, 0, 2},    {3, 4, 0},    {1, 1, 0},     {1, 1, 1},    {1, 7, 5},
      {7, 1, 5},    {1, 40, 33},  {40, 1, 33},  {4, 8, 2},     {4, 2, 8},    {5, 9, 1},
      {33, 17, 1},  {1, 1, 300},  {13, 10, 9},  {32, 10, 6},   {29, 33, 9},  {45, 65, 7},
      {50, 100, 3}, {2, 3, 129},  {3, 130, 20}, {6, 35, 9},    {3, 4, 1030}, {1, 150, 20},
      {9, 140, 1},  {1, 5, 300},  {1, 6, 11},   {1, 1, 4200},  {44, 52, 30}, {60, 84, 10},
      {71, 7, 33},  {50, 13, 40}, {40, 5, 300}, {33, 18, 260}, {35, 35, 40}, {300, 460, 2}};
  bool is_best = true;
  testing::with_each_instruction_set([&] {
    for (const Sizes& size : table) {
      for (const Form lhs : kForms) {
        for (const Form rhs : kForms) {
          for (const auto write :
               {ProductWrite::overwrite, ProductWrite::add, ProductWrite::add_scaled}) {
            // The other sets share all but the loops.
            if (!is_best && write == ProductWrite::add_scaled) continue;
            const std::int64_t batches = write == ProductWrite::add ? 0 : 3;
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
            if (write == ProductWrite::overwrite) {
              spec.bias = spec.relu = spec.gate = true;
              check<float>(spec, 1);
            }
            spec.dtype = DType::f64;
            check<double>(spec, 1);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
    is_best = false;
  });
}

// Large enough for parts, by every cut and by BLAS; the same bits on any number of threads.
TEST(Product, PartsOnOneTwoAndThreeThreads_GiveEqualBits) {
  struct Case {
    Sizes size;
    std::int64_t batches;
    Form lhs, rhs;
    ProductWrite write;
  };
  const Case cases[] = {
      {{600, 40, 350}, 0, Form::plain, Form::plain, ProductWrite::overwrite},
      {{300, 290, 100}, 0, Form::transposed, Form::plain, ProductWrite::add_scaled},
      {{70, 900, 160}, 0, Form::plain, Form::transposed, ProductWrite::add},
      {{64, 65, 300}, 7, Form::plain, Form::transposed, ProductWrite::overwrite},
      {{700, 720, 810}, 0, Form::transposed, Form::plain, ProductWrite::overwrite}};
  for (const Case& product : cases) {
    const auto& [size, batches, lhs, rhs, write] = product;
    ProductSpec spec;
    if (batches > 0) spec.batch = {batches};
    spec.m = size.m;
    spec.n = size.n;
    spec.k = size.k;
    spec.lhs = layout_of(lhs, size.m, size.k, batches);
    spec.rhs = layout_of(rhs, size.k, size.n, batches);
    spec.result = layout_of(Form::plain, size.m, size.n, batches);
    spec.write = write;
    spec.bias = spec.relu = spec.gate = write == ProductWrite::overwrite;
    SCOPED_TRACE(product_name(spec));
    const bool is_huge = size.m * size.n * size.k > 100'000'000;
    const std::vector<float> one = is_huge ? run<float>(spec, 1) : check<float>(spec, 1);
    EXPECT_EQ(run<float>(spec, 2), one);
    EXPECT_EQ(run<float>(spec, 3), one);
  }
}

// A batch of two axes whose matrices are slices: heads of attention, [b, t, h, d] read as [b, h].
TEST(Product, HeadsAsSlicesOfOneTensor_AgreeWithAPlainLoop) {
  constexpr std::int64_t b = 2, t = 5, h = 3, d = 4;
  std::vector<float> x(b * t * h * d), y(x.size()), c(b * h * t * t, std::nanf(""));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 11) - 5;
    y[i] = static_cast<float>(i % 7) - 3;
  }
  ProductSpec spec;
  spec.batch = {b, h};
  spec.m = spec.n = t;
  spec.k = d;
  spec.lhs = {{t * h * d, d}, h * d, 1};
  spec.rhs = {{t * h * d, d}, 1, h * d};
  spec.result = {{h * t * t, t * t}, t, 1};
  spec.scale = 0.5;
  const std::byte* operands[] = {reinterpret_cast<const std::byte*>(x.data()),
                                 reinterpret_cast<const std::byte*>(y.data())};
  std::byte* results[] = {reinterpret_cast<std::byte*>(c.data())};
  product_kernel(spec, pool(1))(results, operands);
  EXPECT_EQ(product_name(spec), "tile_f32 6x5x5x4");
  std::size_t next = 0;
  for (std::int64_t at_b = 0; at_b < b; ++at_b) {
    for (std::int64_t at_h = 0; at_h < h; ++at_h) {
      for (std::int64_t i = 0; i < t; ++i) {
        for (std::int64_t j = 0; j < t; ++j) {
          const auto at = [&](std::int64_t row, std::int64_t p) {
            return static_cast<std::size_t>(((at_b * t + row) * h + at_h) * d + p);
          };
          float sum = 0;
          for (std::int64_t p = 0; p < d; ++p) sum += x[at(i, p)] * y[at(j, p)];
          EXPECT_EQ(c[next++], sum / 2) << at_b << at_h << i << j;
        }
      }
    }
  }
}

// What is not finite, zeros of both signs, subnormal and largest numbers, through the epilogue of
// every routine: the result is exact.
TEST(Product, Epilogue_TreatsNaNZerosAndExtremesAsTheOpsDo) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float tiny = std::numeric_limits<float>::denorm_min();
  constexpr float most = std::numeric_limits<float>::max();
  constexpr float values[] = {nan, inf, -inf, 0.0F, -0.0F, tiny, -tiny, most, -most, 1.0F, -1.0F};
  constexpr std::int64_t kinds = std::ssize(values);
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i % kinds)]; };
  struct Case {
    Sizes size;
    Form lhs;
  };
  testing::with_each_instruction_set([&] {
    for (const auto& [size, lhs] :
         {Case{{20, 33, 3}, Form::plain}, Case{{40, 11, 300}, Form::plain},
          Case{{40, 5, 300}, Form::plain}, Case{{40, 6, 40}, Form::transposed},
          Case{{20, 110, 3}, Form::plain}, Case{{1, 33, 5}, Form::plain},
          Case{{33, 1, 5}, Form::plain}, Case{{5, 33, 1}, Form::plain},
          Case{{5, 33, 0}, Form::plain}, Case{{600, 700, 1000}, Form::plain}}) {
      const auto& [m, n, k] = size;
      for (int parts = 0; parts < 8; ++parts) {
        if (m == 600 && parts != 7) continue;  // by BLAS
        ProductSpec spec;
        spec.m = m;
        spec.n = n;
        spec.k = k;
        spec.lhs = layout_of(lhs, m, k, 0);
        spec.rhs = layout_of(Form::plain, k, n, 0);
        spec.result = layout_of(Form::plain, m, n, 0);
        spec.bias = (parts & 1) != 0;
        spec.relu = (parts & 2) != 0;
        spec.gate = (parts & 4) != 0;
        SCOPED_TRACE(product_name(spec));
        Operands<float> operands(spec);
        auto& [batches, a, b, c, bias, gate] = operands;
        // Every sum is one of the values times 1, and zeros.
        for (std::int64_t p = 0; p < k; ++p) {
          for (std::int64_t i = 0; i < m; ++i) a.at(0, i, p) = p == 0 ? 1.0F : 0.0F;
          for (std::int64_t j = 0; j < n; ++j) b.at(0, p, j) = p == 0 ? value(j) : 0.0F;
        }
        for (std::int64_t j = 0; j < n; ++j) bias.at(0, 0, j) = value(j / kinds + 2);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) gate.at(0, i, j) = value(i + j);
        }
        operands.run(spec, 1);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            float want = k == 0 ? 0.0F : value(j);
            if (spec.bias) want += bias.at(0, 0, j);
            if (spec.relu && !std::isnan(want)) want = std::max(want, 0.0F);
            if (spec.gate && !(gate.at(0, i, j) > 0)) want = 0;
            const float got = c.at(0, i, j);
            const bool is_equal = std::isnan(want) ? std::isnan(got) : got == want;
            ASSERT_TRUE(is_equal) << i << ", " << j << ": " << got << ", expected " << want;
            const bool made_zero = spec.relu || (spec.gate && !(gate.at(0, i, j) > 0));
            ASSERT_FALSE(made_zero && got == 0 && std::signbit(got)) << i << ", " << j;
          }
        }
      }
    }
  });
}

// Sums by a product with ones, as a dot product and as a row times columns.
TEST(Product, SumOfManyFloats_IsAccurate) {
  for (const Sizes& size :
       {Sizes{1, 1, 1 << 22}, Sizes{1 << 8, 1, 1 << 14}, Sizes{1, 2, 1 << 21}}) {
    const auto& [m, n, k] = size;
    std::vector<float> a(static_cast<std::size_t>(m * k), 1.0F);
    std::vector<float> b(static_cast<std::size_t>(k * n), 1.0F);
    std::vector<float>& terms = n == 1 ? a : b;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      terms[i] = static_cast<float>(i * 7919 % 10007) / 10007.0F;
    }
    std::vector<float> c(static_cast<std::size_t>(m * n));
    ProductSpec spec;
    spec.m = m;
    spec.n = n;
    spec.k = k;
    spec.lhs = {{}, k, 1};
    spec.rhs = {{}, n, 1};
    spec.result = {{}, n, 1};
    const std::byte* operands[] = {reinterpret_cast<const std::byte*>(a.data()),
                                   reinterpret_cast<const std::byte*>(b.data())};
    std::byte* results[] = {reinterpret_cast<std::byte*>(c.data())};
    product_kernel(spec, pool(1))(results, operands);
    for (std::int64_t at = 0; at < m * n; ++at) {
      double exact = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        exact += terms[static_cast<std::size_t>(n == 1 ? at * k + p : p * n + at)];
      }
      EXPECT_NEAR(c[static_cast<std::size_t>(at)] / exact, 1, 2e-6) << product_name(spec);
    }
  }
}

TEST(Product, SizeAboveBlasIntegers_IsNamed) {
  ProductSpec spec;
  spec.m = spec.n = spec.k = 1;
  spec.lhs = {{}, std::int64_t{1} << 31, 1};
  spec.rhs = spec.result = {{}, 1, 1};
  spec.m = 2;
  if (blas_kernel() == "Eigen") return;  // its integers hold every size
  try {
    static_cast<void>(product_kernel(spec, pool(1)));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::invalid_argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("left row stride = 2147483648"));
  }
}

TEST(Product, Name_TellsTheRoutineSizesAndWhatAdds) {
  const auto name = [](Sizes size, std::vector<std::int64_t> batch, ProductWrite write) {
    ProductSpec spec;
    spec.batch = std::move(batch);
    spec.m = size.m;
    spec.n = size.n;
    spec.k = size.k;
    spec.write = write;
    return product_name(spec);
  };
  EXPECT_EQ(name({32, 128, 784}, {}, ProductWrite::overwrite), "tile_f32 32x128x784");
  EXPECT_EQ(name({784, 128, 1}, {}, ProductWrite::add_scaled), "ger_f32 784x128x1 +=");
  EXPECT_EQ(name({1, 128, 784}, {}, ProductWrite::overwrite), "gemv_f32 1x128x784");
  EXPECT_EQ(name({64, 64, 32}, {12, 4}, ProductWrite::add), "tile_f32 48x64x64x32 +=");
  EXPECT_EQ(name({1000, 1000, 1000}, {}, ProductWrite::overwrite), "gemm_f32 1000x1000x1000");
  ProductSpec spec;
  spec.m = spec.n = spec.k = 8;
  spec.bias = spec.relu = spec.gate = true;
  EXPECT_EQ(product_name(spec), "tile_f32 8x8x8 (add maximum select)");
  spec.bias = spec.relu = false;
  EXPECT_EQ(product_name(spec), "tile_f32 8x8x8 (select)");
}

}  // namespace
}  // namespace mulgrad::cpu
