#include "tests/support/op_case_table.h"

#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

namespace mulgrad::testing {
namespace {

using D = DType;
using DTypes = std::vector<DType>;

const DTypes kFloats = {D::f64, D::f32, D::bf16};
const DTypes kSigned = {D::f64, D::f32, D::bf16, D::i32};
const DTypes kNumbers = {D::f64, D::f32, D::bf16, D::i32, D::u8};
const DTypes kLogical = {D::i1, D::i32};
const DTypes kAll = {D::f64, D::f32, D::bf16, D::i32, D::i1};

// A derivable x * x that only accepts floats, as a third party would write it.
class Square final : public CustomDefinition {
 public:
  Square() : CustomDefinition("test.square") {}
  Type infer(const std::string&, std::span<const Type> operands) const override {
    if (operands.size() != 1) throw Error(Category::arity_mismatch, "expected one operand");
    if (!is_float(operands[0].dtype)) throw Error(Category::dtype_mismatch, "expected floats");
    return operands[0];
  }
  Tensor evaluate(const std::string&, std::span<const Tensor> operands) const override {
    std::vector<double> values = operands[0].to_doubles();
    for (double& value : values) value *= value;
    const auto sizes = operands[0].sizes();
    return Tensor::from_doubles(operands[0].dtype(), {sizes.begin(), sizes.end()}, values);
  }
  std::optional<std::vector<std::optional<Var>>> derivative(const std::string&,
                                                            std::span<const Var> x, Var,
                                                            Var dy) const override {
    return std::vector<std::optional<Var>>{dy * (x[0] * 2)};
  }
};

std::string snake_case(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) {
      if (!result.empty()) result += '_';
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  return result;
}

using CaseOperands = std::vector<std::variant<CaseOperand, Literal>>;

class Table {
 public:
  // `order` counts for float dtypes only.
  void add(DType dtype, const std::string& form, Op op, CaseOperands operands, int order) {
    std::string name = snake_case(info(op).name) + "_" + std::string(to_string(dtype)) + "_" + form;
    cases_.push_back(
        {std::move(name), std::move(op), std::move(operands), is_float(dtype) ? order : 0});
  }
  std::vector<OpCase> take() { return std::move(cases_); }

 private:
  std::vector<OpCase> cases_;
};

CaseOperand tensor(DType dtype, Shape shape, Values values = Values::any) {
  return {{dtype, std::move(shape)}, values};
}
CaseOperand listed(DType dtype, Shape shape, std::vector<double> list) {
  return {{dtype, std::move(shape)}, Values::listed, std::move(list)};
}
Dim special_count(DType dtype) { return std::ssize(special_values(dtype)); }
CaseOperand special(DType dtype) { return tensor(dtype, {special_count(dtype)}, Values::special); }

void add_creations(Table& table) {
  for (const DType dtype : kAll) {
    table.add(dtype, "matrix", Fill{Literal::one(dtype), {2, 3}}, {}, 0);
  }
  table.add(D::f32, "scalar", Fill{Literal::from_double(D::f32, -1.5), {}}, {}, 0);
  table.add(D::f32, "empty", Fill{Literal::zero(D::f32), {0, 3}}, {}, 0);
  table.add(D::f64, "nan", Fill{Literal::from_double(D::f64, std::nan("")), {2}}, {}, 0);
  for (const DType dtype : kAll) {
    const std::vector<double> values = {1, 0, 0, 1, 1, 0};
    const Tensor value = Tensor::from_doubles(dtype, {2, 3}, values);
    table.add(dtype, "matrix", Constant{std::make_shared<const Tensor>(value)}, {}, 0);
  }
  for (const DType dtype : kNumbers) {
    table.add(dtype, "rows", Iota{dtype, {3, 2}, 0}, {}, 0);
    table.add(dtype, "columns", Iota{dtype, {3, 2}, 1}, {}, 0);
  }
  table.add(D::bf16, "rounded", Iota{D::bf16, {300}, 0}, {}, 0);
  table.add(D::u8, "wrapped", Iota{D::u8, {300}, 0}, {}, 0);
  table.add(D::f32, "empty", Iota{D::f32, {3, 0}, 0}, {}, 0);
}

void add_unary(Table& table, const Op& op, const DTypes& dtypes, Values values, int order) {
  for (const DType dtype : dtypes) {
    table.add(dtype, "matrix", op, {tensor(dtype, {2, 3}, values)}, order);
    table.add(dtype, "special", op, {special(dtype)}, 0);
  }
  const DType first = dtypes[0];
  table.add(first, "scalar", op, {tensor(first, {}, values)}, order);
  table.add(first, "one", op, {tensor(first, {1, 1}, values)}, order);
  table.add(first, "empty", op, {tensor(first, {0, 3}, values)}, order);
}

void add_unaries(Table& table) {
  add_unary(table, Negate{}, kSigned, Values::any, 2);
  add_unary(table, Abs{}, kSigned, Values::nonzero, 1);
  add_unary(table, Sign{}, kSigned, Values::nonzero, 0);
  add_unary(table, Exponential{}, kFloats, Values::any, 2);
  add_unary(table, ExponentialMinusOne{}, kFloats, Values::any, 2);
  add_unary(table, Log{}, kFloats, Values::positive, 2);
  add_unary(table, LogPlusOne{}, kFloats, Values::positive, 2);
  add_unary(table, Sqrt{}, kFloats, Values::positive, 2);
  add_unary(table, Rsqrt{}, kFloats, Values::positive, 2);
  add_unary(table, Tanh{}, kFloats, Values::any, 2);
  add_unary(table, Logistic{}, kFloats, Values::any, 2);
  add_unary(table, Sine{}, kFloats, Values::any, 2);
  add_unary(table, Cosine{}, kFloats, Values::any, 2);
  const std::vector<double> far = {-800, -104, -89, -17, -1e-9, 1e-9, 17, 89, 104, 800};
  for (const Op& op :
       {Op(Exponential{}), Op(ExponentialMinusOne{}), Op(Tanh{}), Op(Logistic{}), Op(Erf{})}) {
    for (const DType dtype : kFloats) {
      table.add(dtype, "far", op, {listed(dtype, {10}, far)}, 0);
    }
  }
  for (const Op& op : {Op(Floor{}), Op(Ceil{}), Op(RoundNearestEven{})}) {
    add_unary(table, op, kFloats, Values::fractional, 0);
    for (const DType dtype : kFloats) {
      table.add(dtype, "halves", op,
                {listed(dtype, {8}, {-2.5, -1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 3.5})}, 0);
    }
  }
  add_unary(table, Not{}, kLogical, Values::any, 0);
  add_unary(table, IsFinite{}, kFloats, Values::any, 0);
  add_unary(table, Erf{}, kFloats, Values::any, 2);
  add_unary(table, StopGradient{}, kAll, Values::any, 0);
}

void add_conversions(Table& table) {
  DTypes dtypes = kAll;
  dtypes.insert(dtypes.end(), {D::f16, D::i8, D::u8, D::i64, D::u64});
  for (const DType from : dtypes) {
    for (const DType to : dtypes) {
      const std::string form = "to_" + std::string(to_string(to));
      const bool smooth = is_float(from) && is_float(to);
      table.add(from, form, Convert{to}, {tensor(from, {2, 3})}, smooth ? 2 : 0);
      table.add(from, form + "_special", Convert{to}, {special(from)}, 0);
    }
  }
  // Between, on and beside the midpoints of the narrower dtypes.
  const double k = 0x1p-40;
  const std::vector<double> ties = {
      1 + 0x1p-8,      1 + 0x1p-8 + k,    1 + 0x1p-8 - k, 1 + 0x3p-8,
      1 + 0x1p-11 + k, 1 + 0x1p-11,       0x1p-133 * 1.5, 0x1p-134 - 0x1p-170,
      0x1p-25,         0x1p-25 + 0x1p-60, 65519.99,       65520};
  for (const DType to : {D::f32, D::bf16, D::f16}) {
    table.add(D::f64, "to_" + std::string(to_string(to)) + "_ties", Convert{to},
              {listed(D::f64, {12}, ties)}, 0);
  }
  const std::vector<double> fractions = {-1e30, -129.5, -128.9, -1.9,  -0.9, 0.9,
                                         1.5,   127.9,  128,    255.9, 256,  1e30};
  for (const DType to : {D::i8, D::u8, D::i32, D::u32, D::i64, D::u64}) {
    table.add(D::f32, "to_" + std::string(to_string(to)) + "_saturating", Convert{to},
              {listed(D::f32, {12}, fractions)}, 0);
  }
  // Above 2^24 and 2^53 an integer lies between floats; 2^25 + 3 would round twice through f64.
  const std::vector<double> large = {16777217,        16777219, 33554435, 0x1p40 + 1,
                                     0x1p60 + 0x1p36, 257,      259,      0x1p60 + 0x1p52 + 256};
  for (const DType to : {D::f64, D::f32, D::bf16}) {
    table.add(D::i64, "to_" + std::string(to_string(to)) + "_large", Convert{to},
              {listed(D::i64, {8}, large)}, 0);
  }
}

// Every declared way of broadcasting; `values` are those of the left and the right side.
void add_binary(Table& table, const Op& op, const DTypes& dtypes, Values left, Values right,
                int order) {
  for (const DType dtype : dtypes) {
    const auto pair = [&](const std::string& form, Shape a, Shape b) {
      table.add(dtype, form, op,
                {tensor(dtype, std::move(a), left), tensor(dtype, std::move(b), right)}, order);
    };
    pair("matrix", {2, 3}, {2, 3});
    table.add(dtype, "special", op,
              {tensor(dtype, {special_count(dtype), 1}, Values::special),
               tensor(dtype, {1, special_count(dtype)}, Values::special)},
              0);
    if (dtype == D::i1) continue;  // i1 literals do not exist
    const Literal literal =
        is_float(dtype) ? Literal::from_double(dtype, 1.5) : Literal::from_int(dtype, 3);
    table.add(dtype, "literal_right", op, {tensor(dtype, {2, 3}, left), literal}, order);
    table.add(dtype, "literal_left", op, {literal, tensor(dtype, {2, 3}, right)}, order);
    if (dtype != dtypes[0]) continue;
    pair("row_right", {2, 3}, {1, 3});
    pair("row_left", {1, 3}, {2, 3});
    pair("column_right", {2, 3}, {2, 1});
    pair("outer", {2, 1}, {1, 3});
    pair("one_of_each", {2, 1, 2}, {1, 3, 2});
    pair("scalar_right", {2, 3}, {});
    pair("scalar_left", {}, {2, 3});
    pair("scalars", {}, {});
    pair("ones", {1, 1}, {1, 1});
    pair("empty", {0, 3}, {0, 3});
    pair("empty_row", {0, 3}, {1, 3});
    pair("empty_scalar", {3, 0}, {});
    pair("odd", {3, 43}, {3, 43});  // a vector kernel's tail
  }
}

void add_binaries(Table& table) {
  add_binary(table, Add{}, kNumbers, Values::any, Values::any, 2);
  add_binary(table, Subtract{}, kNumbers, Values::any, Values::any, 2);
  add_binary(table, Multiply{}, kNumbers, Values::any, Values::any, 2);
  add_binary(table, Divide{}, kNumbers, Values::any, Values::nonzero, 2);
  add_binary(table, Maximum{}, kNumbers, Values::distinct, Values::distinct, 1);
  add_binary(table, Minimum{}, kNumbers, Values::distinct, Values::distinct, 1);
  add_binary(table, Power{}, kNumbers, Values::positive, Values::any, 2);
  for (const DType dtype : kFloats) {
    table.add(dtype, "squares", Power{},
              {tensor(dtype, {2, 3}, Values::nonzero), Literal::from_double(dtype, 2)}, 2);
  }
  add_binary(table, And{}, kLogical, Values::any, Values::any, 0);
  add_binary(table, Or{}, kLogical, Values::any, Values::any, 0);
  for (int direction = 0; direction < 6; ++direction) {
    const Op op = Compare{static_cast<Comparison>(direction)};
    const std::string name(to_string(std::get<Compare>(op).direction));
    for (const DType dtype : kAll) {
      table.add(dtype, name + "_special", op,
                {tensor(dtype, {special_count(dtype), 1}, Values::special),
                 tensor(dtype, {1, special_count(dtype)}, Values::special)},
                0);
    }
    const Literal zero = Literal::zero(D::f32);
    table.add(D::f32, name + "_literal_right", op, {tensor(D::f32, {2, 3}), zero}, 0);
    table.add(D::f32, name + "_literal_left", op, {zero, tensor(D::f32, {2, 3})}, 0);
  }
  const Op less = Compare{Comparison::LT};
  table.add(D::f64, "LT_scalar_right", less, {tensor(D::f64, {2, 3}), tensor(D::f64, {})}, 0);
  table.add(D::f64, "LT_outer", less, {tensor(D::f64, {2, 1}), tensor(D::f64, {1, 3})}, 0);
  table.add(D::i32, "LT_empty", less, {tensor(D::i32, {0, 3}), tensor(D::i32, {1, 3})}, 0);
}

void add_select_and_clamp(Table& table) {
  const auto choice = [](Shape shape) { return tensor(D::i1, std::move(shape)); };
  for (const DType dtype : kAll) {
    table.add(dtype, "matrix", Select{},
              {choice({2, 3}), tensor(dtype, {2, 3}), tensor(dtype, {2, 3})}, 1);
    table.add(
        dtype, "special", Select{},
        {listed(D::i1, {2, 1}, {1, 0}), tensor(dtype, {1, special_count(dtype)}, Values::special),
         tensor(dtype, {1, special_count(dtype)})},
        0);
  }
  const CaseOperand x = tensor(D::f64, {2, 3});
  const Literal literal = Literal::from_double(D::f64, -1.5);
  table.add(D::f64, "literal_true", Select{}, {choice({2, 3}), literal, x}, 1);
  table.add(D::f64, "literal_false", Select{}, {choice({2, 3}), x, literal}, 1);
  table.add(D::f64, "scalar_choice", Select{}, {choice({}), x, x}, 1);
  table.add(D::f64, "scalar_branches", Select{},
            {choice({2, 3}), tensor(D::f64, {}), tensor(D::f64, {})}, 1);
  table.add(D::f64, "row_choice", Select{}, {choice({1, 3}), x, tensor(D::f64, {2, 1})}, 1);
  table.add(D::f64, "scalars", Select{}, {choice({}), tensor(D::f64, {}), tensor(D::f64, {})}, 1);
  table.add(D::f64, "empty", Select{}, {choice({0, 3}), tensor(D::f64, {0, 3}), literal}, 1);

  for (const DType dtype : kNumbers) {
    const auto any = [&](Shape shape) { return tensor(dtype, std::move(shape), Values::distinct); };
    const Literal low =
        is_unsigned(dtype) ? Literal::from_int(dtype, 1) : Literal::from_int(dtype, -1);
    const Literal high = Literal::from_int(dtype, 2);
    table.add(dtype, "matrix", Clamp{}, {any({2, 3}), any({2, 3}), any({2, 3})}, 1);
    table.add(dtype, "literals", Clamp{}, {low, tensor(dtype, {2, 3}, Values::distinct), high}, 1);
    table.add(dtype, "special", Clamp{}, {low, special(dtype), high}, 0);
    table.add(dtype, "special_bounds", Clamp{},
              {tensor(dtype, {special_count(dtype), 1}, Values::special), high,
               tensor(dtype, {1, special_count(dtype)}, Values::special)},
              0);
  }
  const auto distinct = [](Shape shape) {
    return tensor(D::f64, std::move(shape), Values::distinct);
  };
  table.add(D::f64, "scalar_bounds", Clamp{}, {distinct({}), distinct({2, 3}), distinct({})}, 1);
  table.add(D::f64, "row_and_column", Clamp{},
            {distinct({1, 3}), distinct({2, 3}), distinct({2, 1})}, 1);
  table.add(D::f64, "scalar_value", Clamp{}, {distinct({2, 3}), distinct({}), Literal::one(D::f64)},
            1);
  table.add(D::f64, "empty", Clamp{}, {distinct({}), distinct({0, 3}), distinct({})}, 1);
}

void add_movements(Table& table) {
  // A form for every dtype, then forms for f64.
  const auto forms = [&](const Op& op, Shape shape) {
    for (const DType dtype : kAll) table.add(dtype, "typical", op, {tensor(dtype, shape)}, 2);
  };
  const auto form = [&](const std::string& name, const Op& op, Shape shape) {
    table.add(D::f64, name, op, {tensor(D::f64, std::move(shape))}, 2);
  };
  forms(BroadcastInDim{{2, 4, 3}, {0, 2}}, {2, 3});
  form("row", BroadcastInDim{{2, 3}, {1}}, {3});
  form("column", BroadcastInDim{{3, 2}, {0}}, {3});
  form("expanded", BroadcastInDim{{2, 4}, {0, 1}}, {2, 1});
  form("scalar", BroadcastInDim{{2, 3}, {}}, {});
  form("scalar_to_scalar", BroadcastInDim{{}, {}}, {});
  form("transposing", BroadcastInDim{{3, 2}, {1, 0}}, {2, 3});
  form("identity", BroadcastInDim{{2, 3}, {0, 1}}, {2, 3});
  form("one_to_none", BroadcastInDim{{0, 2}, {0}}, {1});
  form("empty", BroadcastInDim{{2, 0}, {1}}, {0});

  forms(Reshape{{3, 2}}, {2, 3});
  form("flat", Reshape{{6}}, {2, 3});
  form("ones", Reshape{{1, 6, 1}}, {2, 3});
  form("from_scalar", Reshape{{1, 1}}, {});
  form("to_scalar", Reshape{Shape{}}, {1, 1});
  form("empty", Reshape{{5, 0}}, {0, 3});

  forms(Transpose{{1, 0}}, {2, 3});
  form("rotated", Transpose{{2, 0, 1}}, {2, 3, 4});
  form("swapped", Transpose{{0, 2, 1}}, {2, 3, 4});
  form("identity", Transpose{{0, 1}}, {2, 3});
  form("scalar", Transpose{{}}, {});
  form("empty", Transpose{{1, 0}}, {0, 3});

  forms(Slice{{1, 0}, {3, 4}, {1, 1}}, {3, 4});
  form("strided", Slice{{0, 1}, {5, 6}, {2, 3}}, {5, 7});
  form("last", Slice{{4}, {5}, {3}}, {5});
  form("whole", Slice{{0, 0}, {2, 3}, {1, 1}}, {2, 3});
  form("empty", Slice{{0, 2}, {3, 2}, {1, 2}}, {3, 4});
  form("scalar", Slice{{}, {}, {}}, {});

  for (const DType dtype : kAll) {
    table.add(dtype, "columns", Concatenate{1}, {tensor(dtype, {2, 3}), tensor(dtype, {2, 1})}, 2);
  }
  const CaseOperand x = tensor(D::f64, {2, 3});
  table.add(D::f64, "rows", Concatenate{0}, {x, tensor(D::f64, {1, 3}), x}, 2);
  table.add(D::f64, "single", Concatenate{0}, {x}, 2);
  table.add(D::f64, "with_empty", Concatenate{1}, {x, tensor(D::f64, {2, 0}), x}, 2);
  table.add(D::f64, "all_empty", Concatenate{0}, {tensor(D::f64, {0, 3}), tensor(D::f64, {0, 3})},
            2);

  for (const DType dtype : kAll) {
    table.add(dtype, "border", Pad{{1, 0}, {0, 2}, {0, 0}},
              {tensor(dtype, {2, 3}), tensor(dtype, {})}, 2);
  }
  const auto pad = [&](const std::string& name, const Pad& op, Shape shape) {
    table.add(D::f64, name, op, {tensor(D::f64, std::move(shape)), tensor(D::f64, {})}, 2);
  };
  pad("interior", Pad{{1, 0}, {0, 0}, {1, 2}}, {2, 3});
  pad("cropped", Pad{{-1, 0}, {0, -2}, {0, 0}}, {3, 4});
  pad("cropped_interior", Pad{{-1}, {-2}, {2}}, {4});
  pad("cropped_and_padded", Pad{{-2}, {3}, {1}}, {3});
  pad("cropped_away", Pad{{-2, 0}, {4, 1}, {0, 0}}, {2, 1});
  pad("to_empty", Pad{{-1}, {-1}, {0}}, {2});
  pad("from_empty", Pad{{1, 0}, {1, 0}, {3, 0}}, {0, 2});
  pad("none", Pad{{0}, {0}, {0}}, {3});
  pad("scalar", Pad{{}, {}, {}}, {});
}

void add_reductions(Table& table) {
  struct Kind {
    Reduction kind;
    std::string name;
    const DTypes& dtypes;
    Values values;
    int order;
  };
  const Kind kinds[] = {{Reduction::sum, "sum", kNumbers, Values::any, 2},
                        {Reduction::product, "product", kNumbers, Values::nonzero, 2},
                        {Reduction::max, "max", kNumbers, Values::distinct, 1},
                        {Reduction::min, "min", kNumbers, Values::distinct, 1},
                        {Reduction::and_, "and", kLogical, Values::any, 0},
                        {Reduction::or_, "or", kLogical, Values::any, 0}};
  for (const Kind& k : kinds) {
    const auto add = [&](DType dtype, const std::string& form, Axes axes, Shape shape) {
      table.add(dtype, k.name + "_" + form, Reduce{k.kind, std::move(axes)},
                {tensor(dtype, std::move(shape), k.values)}, k.order);
    };
    for (const DType dtype : k.dtypes) {
      add(dtype, "rows", {1}, {2, 3});
      add(dtype, "two_axes", {0, 2}, {2, 3, 2});
      add(dtype, "of_nothing", {0}, {0, 3});
      const Dim count = special_count(dtype);
      table.add(dtype, k.name + "_special", Reduce{k.kind, {0}}, {special(dtype)}, 0);
      table.add(dtype, k.name + "_special_rows", Reduce{k.kind, {1}},
                {tensor(dtype, {count, 1}, Values::special)}, 0);
    }
    const DType first = k.dtypes[0];
    add(first, "columns", {0}, {2, 3});
    add(first, "all", {0, 1, 2}, {2, 3, 2});
    add(first, "no_axes", {}, {2, 3});
    add(first, "scalar", {}, {});
    add(first, "middle", {1}, {2, 3, 2});
    add(first, "one", {1}, {3, 1});
    add(first, "to_empty", {1}, {0, 3});
  }
  const double nan = std::nan("");
  table.add(D::f32, "max_nan", Reduce{Reduction::max, {0}},
            {listed(D::f32, {5}, {7, nan, -2.5, 11, .25})}, 0);
  table.add(D::f32, "max_zeros", Reduce{Reduction::max, {0}}, {listed(D::f32, {2}, {-0.0, 0.0})},
            0);
  table.add(D::f32, "min_zeros", Reduce{Reduction::min, {0}}, {listed(D::f32, {2}, {0.0, -0.0})},
            0);
  table.add(D::bf16, "sum_f32_accumulation", Reduce{Reduction::sum, {0}},
            {listed(D::bf16, {5}, {256, 1, 1, 1, 1})}, 0);
  table.add(D::i32, "sum_wrapping", Reduce{Reduction::sum, {0}},
            {listed(D::i32, {3}, {2147483647, 2147483647, 5})}, 0);

  const auto mean = [&](DType dtype, const std::string& form, const Mean& op, Shape shape) {
    table.add(dtype, form, op, {tensor(dtype, std::move(shape))}, 2);
  };
  for (const DType dtype : kFloats) {
    mean(dtype, "rows", {{1}, false}, {2, 3});
    mean(dtype, "all", {{0, 1}, false}, {3, 5});
    mean(dtype, "all_kept", {{0, 1}, true}, {3, 5});
    mean(dtype, "of_nothing", {{0}, false}, {0, 3});
    mean(dtype, "no_axes", {{}, false}, {2, 3});
    table.add(dtype, "special_rows", Mean{{1}, true},
              {tensor(dtype, {special_count(dtype), 1}, Values::special)}, 0);
  }
  mean(D::f64, "columns_kept", {{0}, true}, {2, 3});
  mean(D::f64, "two_axes", {{0, 2}, false}, {2, 3, 2});
  mean(D::f64, "scalar", {{}, false}, {});
  mean(D::f64, "to_empty", {{1}, false}, {0, 3});
  table.add(D::f32, "overflowing_sum", Mean{{0}, false}, {listed(D::f32, {2}, {3e38, 3e38})}, 0);
  // The sum 257 is no bf16 and becomes 256, so the mean is 128, not 128.5.
  table.add(D::bf16, "rounded_sum", Mean{{0}, false}, {listed(D::bf16, {2}, {256, 1})}, 0);
}

void add_products(Table& table) {
  const auto product = [&](DType dtype, const std::string& form, DotGeneral op, Shape a, Shape b) {
    op.dtype = dtype;
    table.add(dtype, form, op, {tensor(dtype, std::move(a)), tensor(dtype, std::move(b))}, 2);
  };
  for (const DType dtype : kNumbers) {
    product(dtype, "plain", {{}, {}, {1}, {0}}, {2, 3}, {3, 4});
    product(dtype, "batched", {{0}, {0}, {2}, {1}}, {2, 3, 4}, {2, 4, 2});
    product(dtype, "of_nothing", {{}, {}, {1}, {0}}, {2, 0}, {0, 3});
  }
  product(D::f32, "odd", {{}, {}, {1}, {0}}, {17, 33}, {33, 9});
  product(D::f64, "left_transposed", {{}, {}, {0}, {0}}, {3, 2}, {3, 4});
  product(D::f64, "right_transposed", {{}, {}, {1}, {1}}, {2, 3}, {4, 3});
  product(D::f64, "both_transposed", {{}, {}, {0}, {1}}, {3, 2}, {4, 3});
  product(D::f64, "matrix_vector", {{}, {}, {1}, {0}}, {2, 3}, {3});
  product(D::f64, "vector_matrix", {{}, {}, {0}, {0}}, {3}, {3, 2});
  product(D::f64, "vectors", {{}, {}, {0}, {0}}, {3}, {3});
  product(D::f64, "outer", {{}, {}, {}, {}}, {2}, {3});
  product(D::f64, "scalars", {{}, {}, {}, {}}, {}, {});
  product(D::f64, "scalar_matrix", {{}, {}, {}, {}}, {}, {2, 3});
  product(D::f64, "two_contracting", {{}, {}, {1, 2}, {1, 0}}, {2, 3, 4}, {4, 3, 2});
  product(D::f64, "all_contracting", {{}, {}, {0, 1}, {0, 1}}, {2, 3}, {2, 3});
  product(D::f64, "inner_batch", {{1}, {2}, {2}, {0}}, {2, 3, 4}, {4, 2, 3});
  product(D::f64, "two_batches", {{0, 1}, {1, 0}, {3}, {2}}, {2, 3, 2, 4}, {3, 2, 4, 2});
  product(D::f64, "batch_only", {{0}, {0}, {}, {}}, {3}, {3});
  product(D::f64, "rank_4", {{0}, {0}, {3}, {2}}, {2, 3, 1, 4}, {2, 2, 4});
  product(D::f64, "ones", {{}, {}, {1}, {0}}, {1, 1}, {1, 1});
  product(D::f64, "empty_rows", {{}, {}, {1}, {0}}, {0, 3}, {3, 2});
  product(D::f64, "empty_batch", {{0}, {0}, {2}, {1}}, {0, 2, 3}, {0, 3, 2});
  const DotGeneral plain{{}, {}, {1}, {0}};
  const auto result = [&](DType dtype) {
    DotGeneral op = plain;
    op.dtype = dtype;
    return op;
  };
  const double inf = std::numeric_limits<double>::infinity();
  table.add(
      D::f32, "zero_times_inf", result(D::f32),
      {listed(D::f32, {2, 2}, {0, 1, 1, 1}), listed(D::f32, {2, 2}, {inf, 1, 1, std::nan("")})}, 0);
  table.add(D::i8, "to_i32", result(D::i32),
            {listed(D::i8, {1, 3}, {-128, 127, 100}), listed(D::i8, {3, 1}, {-128, 127, 100})}, 0);
  table.add(D::i32, "wrapping", result(D::i32),
            {listed(D::i32, {1, 2}, {2147483647, 65536}), listed(D::i32, {2, 1}, {3, 65536})}, 0);
  table.add(D::bf16, "to_f32", result(D::f32), {tensor(D::bf16, {2, 3}), tensor(D::bf16, {3, 2})},
            2);
  table.add(D::bf16, "f32_accumulation", result(D::bf16),
            {listed(D::bf16, {1, 5}, {256, 1, 1, 1, 1}), listed(D::bf16, {5, 1}, {1, 1, 1, 1, 1})},
            0);
  table.add(D::f32, "to_f64", result(D::f64), {tensor(D::f32, {2, 3}), tensor(D::f32, {3, 2})}, 2);
}

void add_customs(Table& table) {
  const Custom square{case_customs().at("test.square"), "k = 1"};
  for (const DType dtype : kFloats) {
    table.add(dtype, "square", square, {tensor(dtype, {2, 3})}, 2);
  }
}

}  // namespace

const CustomRegistry& case_customs() {
  static const CustomRegistry kRegistry = {{"test.square", std::make_shared<const Square>()}};
  return kRegistry;
}

std::vector<OpCase> make_op_cases() {
  Table table;
  add_creations(table);
  add_unaries(table);
  add_conversions(table);
  add_binaries(table);
  add_select_and_clamp(table);
  add_movements(table);
  add_reductions(table);
  add_products(table);
  add_customs(table);
  return table.take();
}

}  // namespace mulgrad::testing
