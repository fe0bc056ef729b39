#include "tests/support/op_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/builder.h"
#include "tests/support/op_case_table.h"

namespace mulgrad::testing {
namespace {

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1), exact
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_;
};

std::vector<Literal> make_special_values(DType dtype) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    std::vector<Literal> values;
    if constexpr (std::is_same_v<T, bool>) {
      return std::vector<Literal>{Literal::zero(dtype), Literal::one(dtype)};
    } else if constexpr (is_float_type<T>) {
      const Literal smallest{dtype, 1};
      const Literal negative_subnormal{dtype, Literal::from_double(dtype, -0.0).bits |
                                                  ((std::uint64_t{1} << mantissa_bits(dtype)) - 1)};
      values = {Literal::from_double(dtype, std::nan("")),
                Literal::infinity(dtype),
                Literal::infinity(dtype, true),
                Literal::zero(dtype),
                Literal::from_double(dtype, -0.0),
                smallest,
                negative_subnormal,
                Literal::largest_finite(dtype),
                Literal::lowest_finite(dtype)};
      for (const double value : {1.0, -1.0, 0.5, 2.5, -3.0}) {
        values.push_back(Literal::from_double(dtype, value));
      }
    } else {
      values = {Literal::lowest_finite(dtype), Literal::largest_finite(dtype)};
      for (const std::int64_t value : {0, 1, 2, 7, 100}) {
        values.push_back(Literal::from_int(dtype, value));
        if (std::is_signed_v<T> && value != 0) values.push_back(Literal::from_int(dtype, -value));
      }
    }
    return values;
  });
}

// Elements 0 .. count - 1 in random order (Fisher-Yates).
std::vector<std::int64_t> shuffled(std::int64_t count, SplitMix64& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = count; i-- > 1;) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random.below(i + 1))]);
  }
  return order;
}

double random_value(Values values, DType dtype, SplitMix64& random) {
  const bool whole = !is_float(dtype);
  const double sign = !is_unsigned(dtype) && (random.next() & 1) != 0 ? -1 : 1;
  switch (values) {
    case Values::any:
      if (dtype == DType::i1) return static_cast<double>(random.below(2));
      return whole ? sign * static_cast<double>(random.below(10)) : random.uniform() * 4 - 2;
    case Values::positive:
      return whole ? static_cast<double>(1 + random.below(9)) : 0.25 + 2 * random.uniform();
    case Values::nonzero:
      return sign * random_value(Values::positive, dtype, random);
    case Values::fractional:
      return static_cast<double>(random.below(7) - 3) + 0.125 + 0.25 * random.uniform();
    default:
      INTERNAL_CHECK(false);
      return 0;
  }
}

Tensor make_input(const OpCase& op_case, std::size_t index, std::uint64_t seed) {
  const auto& operand = std::get<CaseOperand>(op_case.operands[index]);
  const DType dtype = operand.type.dtype;
  const std::vector<std::int64_t> sizes = operand.type.shape.sizes();
  if (operand.values == Values::listed) return Tensor::from_doubles(dtype, sizes, operand.list);
  Tensor result(dtype, sizes);
  if (operand.values == Values::special) {
    const std::span<const Literal> values = special_values(dtype);
    INTERNAL_CHECK(result.elements() == std::ssize(values));
    dispatch(dtype, [&]<class T>(std::type_identity<T>) {
      std::ranges::transform(values, result.data<T>().begin(),
                             [](const Literal& value) { return value.as<T>(); });
    });
    return result;
  }
  SplitMix64 random(hash_mix(hash_bytes(seed, std::as_bytes(std::span(op_case.name))), index));
  std::vector<double> values;
  if (operand.values == Values::distinct) {
    const std::int64_t count = std::ssize(op_case.operands);
    const std::int64_t middle = is_unsigned(dtype) ? 0 : result.elements() / 2;
    for (const std::int64_t k : shuffled(result.elements(), random)) {
      const std::int64_t unique = (k - middle) * count + static_cast<std::int64_t>(index);
      // Odd multiples of 1/8, so that no element meets a literal that is a multiple of 1/4 either.
      values.push_back(is_float(dtype) ? static_cast<double>(2 * unique + 1) / 8
                                       : static_cast<double>(unique));
    }
  } else {
    for (std::int64_t i = 0; i < result.elements(); ++i) {
      values.push_back(random_value(operand.values, dtype, random));
    }
  }
  return Tensor::from_doubles(dtype, sizes, values);
}

}  // namespace

std::span<const OpCase> op_cases() {
  static const std::vector<OpCase> kCases = make_op_cases();
  return kCases;
}

std::span<const Literal> special_values(DType dtype) {
  static const std::map<DType, std::vector<Literal>> kValues = [] {
    std::map<DType, std::vector<Literal>> values;
#define X(name, storage) values[DType::name] = make_special_values(DType::name);
    MULGRAD_DTYPES(X)
#undef X
    return values;
  }();
  return kValues.at(dtype);
}

Program program_of(const OpCase& op_case) {
  Builder builder;
  std::vector<Operand> operands;
  for (const auto& operand : op_case.operands) {
    if (const auto* literal = std::get_if<Literal>(&operand)) {
      operands.emplace_back(*literal);
    } else {
      operands.emplace_back(builder.input("x" + std::to_string(builder.inputs().size()),
                                          std::get<CaseOperand>(operand).type));
    }
  }
  builder.output("y", builder.add(op_case.op, operands));
  return builder.finish();
}

std::vector<Tensor> inputs_of(const OpCase& op_case, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
    if (std::holds_alternative<Literal>(op_case.operands[i])) continue;
    inputs.push_back(make_input(op_case, i, seed));
  }
  return inputs;
}

Tolerance tolerance_of(const OpCase& op_case) {
  const DType dtype = program_of(op_case).nodes()[0].type.dtype;
  if (!is_float(dtype)) return {};
  const double ulp = std::ldexp(1.0, -mantissa_bits(dtype));  // the largest relative one
  switch (kind_of(op_case.op)) {
    case OpKind::Exponential:
    case OpKind::ExponentialMinusOne:
    case OpKind::Log:
    case OpKind::LogPlusOne:
    case OpKind::Rsqrt:
    case OpKind::Tanh:
    case OpKind::Logistic:
    case OpKind::Erf:
    case OpKind::Power:
      return {.relative = dtype == DType::bf16 || dtype == DType::f16 ? ulp : 4 * ulp};
    case OpKind::Sine:
    case OpKind::Cosine:  // relative accuracy near a zero is not asked for
      return {.relative = ulp, .of_largest = ulp};
    case OpKind::Reduce: {
      const Reduction kind = std::get<Reduce>(op_case.op).kind;
      if (kind == Reduction::max || kind == Reduction::min) return {};
      return {.relative = 4 * ulp, .of_largest = 4 * ulp};
    }
    case OpKind::Mean:
      return {.relative = 4 * ulp, .of_largest = 4 * ulp};
    case OpKind::DotGeneral:  // up to 33 terms
      return {.relative = 4 * ulp, .of_largest = 8 * ulp};
    default:
      return {};
  }
}

}  // namespace mulgrad::testing
