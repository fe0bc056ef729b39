#include "backends/cpu/product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/blas.h"
#include "backends/cpu/tile.h"
#include "core/error.h"

namespace mulgrad::cpu {
namespace {

// The routine for a shape. All bounds below were measured on CPUs with AVX2 and AVX-512.
enum class Route : std::uint8_t {
  nothing,    // no element, or nothing to add
  zero,       // nothing is summed
  outer,      // k = 1
  dots,       // a vector times contiguous columns
  dots_left,  // contiguous rows times a vector
  row_left,   // a matrix times a vector, as the vector times the transposed matrix
  tile,
  blas
};

// Multiply-adds from which on BLAS, which blocks for all caches, is no slower than own tiles.
constexpr double kBlasWork = 400e6;
// The same on a CPU for whose vectors no tile is compiled.
constexpr double kScalarWork = 1000;
// Multiply-adds from which on a call is worth two threads, and that every part should have.
constexpr double kThreadedWork = 8e6;
constexpr double kPartWork = 4e6;
constexpr double kBlasPartWork = 100e6;
constexpr std::int64_t kMostParts = 8;
// Columns of parts come in multiples of this, so that tiles are whole.
constexpr std::int64_t kPartColumns = 64;
// Rows that a part has at least: it packs the right side anew.
constexpr std::int64_t kPartRows = 250;

double work_of(const ProductSpec& spec) {
  return static_cast<double>(spec.m) * static_cast<double>(spec.n) * static_cast<double>(spec.k);
}

std::int64_t count(std::span<const std::int64_t> sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

// An axis of size 1 may have any stride; here it gets the one that a stored matrix has.
MatrixLayout plain_ones(MatrixLayout layout, std::int64_t rows, std::int64_t columns) {
  if (columns == 1) layout.column_stride = 1;
  if (rows == 1) {
    layout.row_stride = layout.column_stride == 1 ? std::max<std::int64_t>(columns, 1) : 1;
  }
  return layout;
}

Route route_of(const ProductSpec& spec) {
  if (spec.m == 0 || spec.n == 0 || count(spec.batch) == 0) return Route::nothing;
  if (spec.k == 0) return spec.write == ProductWrite::overwrite ? Route::zero : Route::nothing;
  const bool row = spec.m == 1 && spec.lhs.column_stride == 1;
  if (spec.k == 1 && spec.rhs.column_stride == 1) return Route::outer;
  if (row && spec.rhs.row_stride == 1) return Route::dots;
  if (spec.n == 1 && spec.rhs.row_stride == 1 && spec.lhs.column_stride == 1) {
    return Route::dots_left;
  }
  if (spec.n == 1 && spec.result.row_stride == 1) return Route::row_left;
  if (spec.m == 1) return Route::tile;
  const double blas_work = vector_level() == VectorLevel::other ? kScalarWork : kBlasWork;
  return work_of(spec) > blas_work ? Route::blas : Route::tile;
}

// How a call is cut: into runs of the batch, else each product by rows or by columns. A function of
// the spec alone.
enum class Cut : std::uint8_t { none, batch, rows, columns };
struct Parts {
  Cut cut = Cut::none;
  std::int64_t count = 1;
};

Parts parts_of(const ProductSpec& spec, Route route) {
  if (route != Route::tile && route != Route::blas) return {};
  const double work = work_of(spec);
  const std::int64_t batches = count(spec.batch);
  const double all = work * static_cast<double>(batches);
  if (all < kThreadedWork) return {};
  const auto most = [](double work_left, double each, std::int64_t limit) {
    std::int64_t parts = 1;
    while (2 * parts <= std::min(limit, kMostParts) &&
           work_left / static_cast<double>(2 * parts) >= each) {
      parts *= 2;
    }
    return parts;
  };
  if (batches > 1) return {Cut::batch, most(all, kPartWork, batches)};
  const double each = route == Route::blas ? kBlasPartWork : kPartWork;
  // Tiles take the columns panel by panel anyway, so that cut is free.
  const std::int64_t by_columns = most(all, each, spec.n / kPartColumns);
  const std::int64_t by_rows = most(all, each, spec.m / kPartRows);
  if (by_columns >= by_rows) return {Cut::columns, by_columns};
  return {Cut::rows, by_rows};
}

// Part `part` of `parts` of `size` things, in multiples of `unit`.
struct Range {
  std::int64_t begin, end;
};
Range part_range(std::int64_t size, std::int64_t parts, std::int64_t part, std::int64_t unit) {
  const std::int64_t units = (size + unit - 1) / unit;
  return {std::min(size, units * part / parts * unit),
          std::min(size, units * (part + 1) / parts * unit)};
}

template <class T>
class Product {
 public:
  Product(const ProductSpec& spec, std::shared_ptr<ThreadPool> pool)
      : route_(route_of(spec)),
        parts_(parts_of(spec, route_)),
        scaled_(spec.write == ProductWrite::add_scaled),
        shape_{spec.m,
               spec.n,
               spec.k,
               nullptr,
               spec.lhs.row_stride,
               spec.lhs.column_stride,
               nullptr,
               spec.rhs.row_stride,
               spec.rhs.column_stride,
               nullptr,
               spec.result.row_stride,
               static_cast<T>(spec.scale),
               spec.write == ProductWrite::overwrite ? Store::overwrite : Store::add,
               {nullptr, spec.relu, nullptr}},
        bias_(spec.bias),
        gate_(spec.gate),
        batch_(spec.batch),
        batch_strides_{spec.lhs.batch_strides, spec.rhs.batch_strides, spec.result.batch_strides},
        batches_(count(spec.batch)),
        tile_(route_ == Route::tile && batches_ == 1 ? single_tile(shape_) : nullptr),
        pool_(std::move(pool)) {}

  void operator()(std::span<std::byte* const> results,
                  std::span<const std::byte* const> operands) const {
    if (route_ == Route::nothing) return;
    MatrixProduct<T> product = shape_;
    product.a = reinterpret_cast<const T*>(operands[0]);
    product.b = reinterpret_cast<const T*>(operands[1]);
    product.c = reinterpret_cast<T*>(results[0]);
    if (scaled_) product.scale *= *reinterpret_cast<const T*>(operands[2]);
    if (bias_) product.epilogue.bias = reinterpret_cast<const T*>(operands[2]);
    if (gate_) product.epilogue.gate = reinterpret_cast<const T*>(operands.back());
    if (tile_ != nullptr) return tile_(product, nullptr);
    if (parts_.count == 1) return batches_ == 1 ? run_one(product) : run_part(product, 0);
    const std::pair call(this,
                         &product);  // one reference, for which std::function allocates nothing
    pool_->run(static_cast<int>(parts_.count),
               [&call](int part) { call.first->run_part(*call.second, part); });
  }

 private:
  void run_part(const MatrixProduct<T>& all, std::int64_t part) const {
    if (batches_ == 1) return run_one(cut(all, part));
    const Range range =
        parts_.cut == Cut::batch ? part_range(batches_, parts_.count, part, 1) : Range{0, batches_};
    for (std::int64_t index = range.begin; index < range.end; ++index) {
      MatrixProduct<T> one = all;
      std::int64_t left = index;
      for (std::size_t axis = batch_.size(); axis-- > 0;) {
        const std::int64_t at = left % batch_[axis];
        left /= batch_[axis];
        one.a += at * batch_strides_[0][axis];
        one.b += at * batch_strides_[1][axis];
        one.c += at * batch_strides_[2][axis];
        if (gate_) one.epilogue.gate += at * batch_strides_[2][axis];
      }
      run_one(one);
    }
  }

  MatrixProduct<T> cut(const MatrixProduct<T>& all, std::int64_t part) const {
    if (parts_.cut == Cut::columns) {
      const Range columns = part_range(all.n, parts_.count, part, kPartColumns);
      return columns_of(all, columns.begin, columns.end - columns.begin);
    }
    MatrixProduct<T> one = all;
    if (parts_.cut == Cut::rows) {
      const Range rows = part_range(all.m, parts_.count, part, 1);
      one.m = rows.end - rows.begin;
      skip_rows(one, rows.begin);
    }
    return one;
  }

  // Tiles have the epilogue while they hold the result in registers.
  void run_one(const MatrixProduct<T>& p) const {
    if (route_ == Route::tile) return tile_product(p, *pool_);
    MatrixProduct<T> plain = p;
    plain.epilogue = {};
    run_plain(plain);
    if (p.epilogue.is_nothing()) return;
    for (std::int64_t i = 0; i < p.m; ++i) {
      T* const row = p.c + i * p.c_row;
      for (std::int64_t j = 0; j < p.n; ++j) row[j] = finished(p, i, j, row[j]);
    }
  }

  void run_plain(const MatrixProduct<T>& p) const {
    switch (route_) {
      case Route::nothing:
        return;
      case Route::zero:
        for (std::int64_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.c_row, p.n, T(0));
        return;
      case Route::outer:
        return outer_product(p);
      case Route::dots:
        return dot_products(p, 1);
      case Route::dots_left:
        return dot_products(swapped(p), p.c_row);
      case Route::row_left:
        return tile_product(swapped(p), *pool_);
      case Route::tile:
        return tile_product(p, *pool_);
      case Route::blas:
        return blas_product(p);
    }
  }

  // For n = 1: the same product with the vector on the left.
  static MatrixProduct<T> swapped(const MatrixProduct<T>& p) {
    return {1, p.m, p.k, p.b, p.k, p.b_row, p.a, p.a_column, p.a_row, p.c, p.m, p.scale, p.store};
  }

  Route route_;
  Parts parts_;
  bool scaled_;
  MatrixProduct<T> shape_;
  bool bias_, gate_;
  std::vector<std::int64_t> batch_;
  std::array<std::vector<std::int64_t>, 3> batch_strides_;
  std::int64_t batches_;
  TileFunction<T> tile_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace

Kernel product_kernel(const ProductSpec& spec, std::shared_ptr<ThreadPool> pool) {
  INTERNAL_CHECK(spec.dtype == DType::f32 || spec.dtype == DType::f64);
  INTERNAL_CHECK(spec.write == ProductWrite::overwrite || !(spec.bias || spec.relu || spec.gate));
  for (const MatrixLayout* layout : {&spec.lhs, &spec.rhs, &spec.result}) {
    INTERNAL_CHECK(layout->batch_strides.size() == spec.batch.size());
  }
  ProductSpec canonical = spec;
  canonical.lhs = plain_ones(spec.lhs, spec.m, spec.k);
  canonical.rhs = plain_ones(spec.rhs, spec.k, spec.n);
  canonical.result = plain_ones(spec.result, spec.m, spec.n);
  for (const auto& [name, size] :
       {std::pair("m", canonical.m), std::pair("n", canonical.n), std::pair("k", canonical.k),
        std::pair("the left row stride", canonical.lhs.row_stride),
        std::pair("the left column stride", canonical.lhs.column_stride),
        std::pair("the right row stride", canonical.rhs.row_stride),
        std::pair("the right column stride", canonical.rhs.column_stride),
        std::pair("the result's row stride", canonical.result.row_stride)}) {
    check_blas_size(name, size);
  }
  prepare_blas(pool->threads());
  if (spec.dtype == DType::f32) return Product<float>(canonical, std::move(pool));
  return Product<double>(canonical, std::move(pool));
}

std::string product_name(const ProductSpec& spec) {
  const std::string_view routine = spec.k == 1                  ? "ger"
                                   : spec.m == 1 || spec.n == 1 ? "gemv"
                                   : work_of(spec) > kBlasWork  ? "gemm"
                                                                : "tile";
  std::string name = std::string(routine) + "_" + std::string(to_string(spec.dtype)) + " ";
  if (!spec.batch.empty()) name += std::to_string(count(spec.batch)) + "x";
  name += std::to_string(spec.m) + "x" + std::to_string(spec.n) + "x" + std::to_string(spec.k);
  if (spec.write != ProductWrite::overwrite) name += " +=";
  std::string epilogue;
  if (spec.bias) epilogue += " add";
  if (spec.relu) epilogue += " maximum";
  if (spec.gate) epilogue += " select";
  if (!epilogue.empty()) name += " (" + epilogue.substr(1) + ")";
  return name;
}

}  // namespace mulgrad::cpu
