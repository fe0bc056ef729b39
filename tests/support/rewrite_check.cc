#include "tests/support/rewrite_check.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "core/interpreter.h"
#include "tests/support/near.h"
#include "tests/support/op_cases.h"

namespace mulgrad::testing {
namespace {

Literal draw_element(DType dtype, Draw draw, std::mt19937_64& bits) {
  const double unit = std::ldexp(static_cast<double>(bits() >> 11), -53);  // [0, 1)
  if (is_float(dtype)) {
    return Literal::from_double(dtype, draw == Draw::mixed ? 4 * unit - 2 : 2 * unit + 0.25);
  }
  if (dtype == DType::i1) return Literal::of(unit < 0.5);
  if (draw == Draw::positive) return Literal::from_double(dtype, 1 + std::floor(9 * unit));
  return Literal::from_double(
      dtype, is_unsigned(dtype) ? std::floor(10 * unit) : std::floor(19 * unit) - 9);
}

Tensor tensor_of(const Type& type, const std::function<Literal()>& next) {
  Tensor result(type.dtype, type.shape.sizes());
  dispatch(type.dtype, [&]<class T>(std::type_identity<T>) {
    for (T& element : result.data<T>()) element = next().as<T>();
  });
  return result;
}

bool speaks_about(const Numerics& numerics, const Literal& value) {
  if (numerics.finite_only && !value.is_finite()) return false;
  // A sum in another order may overflow where the first did not.
  return !(numerics.reassociates && value.is_finite() && std::fabs(value.as_double()) > 1e30);
}

Program without_symbols(const Program& program) {
  Bindings bindings;
  for (const std::string& symbol : symbols(program)) bindings[symbol] = 3;
  return mulgrad::bind(program, bindings);
}

}  // namespace

std::vector<Tensor> draw_inputs(const Program& program, Draw draw, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<Tensor> inputs;
  for (const Input& input : program.inputs()) {
    inputs.push_back(
        tensor_of(input.type, [&] { return draw_element(input.type.dtype, draw, bits); }));
  }
  return inputs;
}

std::vector<Tensor> special_inputs(const Program& program, const Numerics& numerics) {
  std::vector<Tensor> inputs;
  std::size_t next = 0;
  for (const Input& input : program.inputs()) {
    std::vector<Literal> values;
    for (const Literal& value : special_values(input.type.dtype)) {
      if (speaks_about(numerics, value)) values.push_back(value);
    }
    inputs.push_back(tensor_of(input.type, [&] { return values[next++ % values.size()]; }));
  }
  return inputs;
}

std::uint64_t ulp_distance(const Literal& a, const Literal& b) {
  INTERNAL_CHECK(a.dtype == b.dtype && is_float(a.dtype));
  if (a.is_nan() && b.is_nan()) return 0;
  if (a == b) return 0;
  if (!a.is_finite() || !b.is_finite()) return std::numeric_limits<std::uint64_t>::max();
  // The bits of a float, less its sign, count the floats between it and zero.
  const std::uint64_t sign = std::uint64_t{1} << (byte_size(a.dtype) * 8 - 1);
  const std::uint64_t from_a = a.bits & ~sign;
  const std::uint64_t from_b = b.bits & ~sign;
  if ((a.bits & sign) != (b.bits & sign)) return from_a + from_b;
  return from_a > from_b ? from_a - from_b : from_b - from_a;
}

::testing::AssertionResult same_values(const Program& before, const Program& after,
                                       const Numerics& numerics) {
  const Program source = without_symbols(before);
  const Program result = without_symbols(after);
  std::vector<std::vector<Tensor>> draws = {draw_inputs(source, Draw::mixed, 1),
                                            draw_inputs(source, Draw::mixed, 2),
                                            draw_inputs(source, Draw::positive, 3)};
  draws.push_back(special_inputs(source, numerics));
  for (const std::vector<Tensor>& inputs : draws) {
    const std::vector<Tensor> want = interpret(source, inputs);
    const std::vector<Tensor> got = interpret(result, inputs);
    for (std::size_t i = 0; i < want.size(); ++i) {
      Tolerance tolerance;
      if (numerics.sign_of_zero) tolerance.zero_sign = ZeroSign::free;
      if ((numerics.reassociates || numerics.ulp > 0) && is_float(want[i].dtype())) {
        tolerance.of_largest = std::ldexp(64.0, -mantissa_bits(want[i].dtype()));
      }
      const auto outcome = near(got[i], want[i], tolerance);
      if (!outcome) {
        return ::testing::AssertionFailure()
               << "output \"" << source.outputs()[i].name << "\" of draw " << &inputs - draws.data()
               << ": " << outcome.message();
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace mulgrad::testing
