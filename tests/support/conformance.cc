#include "tests/support/conformance.h"

#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "core/expr.h"
#include "core/interpreter.h"
#include "tests/support/near.h"
#include "tests/support/op_cases.h"
#include "tests/support/scale.h"

namespace mulgrad::conformance {
namespace {

using testing::near;
using testing::OpCase;
using testing::Tolerance;
using testing::ZeroSign;

constexpr Check kChecks[] = {Check::op_case,        Check::special_values, Check::size_zero,
                             Check::size_one,       Check::stale_memory,   Check::zeros_and_ones,
                             Check::exact_products, Check::precision,      Check::repetition};

// What is wrong with the outputs, or nothing.
using Verdict = std::optional<std::string>;
using Judge = std::function<Verdict(std::span<const Tensor>)>;

Program product(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n) {
  Builder builder;
  const Var a(builder, builder.input("a", {dtype, {m, k}}));
  const Var b(builder, builder.input("b", {dtype, {k, n}}));
  builder.output("y", matmul(a, b).id());
  return builder.finish();
}

Tensor filled(DType dtype, std::vector<std::int64_t> sizes, double value) {
  return Tensor::filled(Literal::from_double(dtype, value), std::move(sizes));
}

// The inputs with every float replaced by NaN.
std::vector<Tensor> poisoned(std::span<const Tensor> inputs) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    if (!is_float(input.dtype())) {
      result.push_back(input);
      continue;
    }
    result.push_back(filled(input.dtype(), {input.sizes().begin(), input.sizes().end()},
                            std::numeric_limits<double>::quiet_NaN()));
  }
  return result;
}

class Kit {
 public:
  Kit(const Target& target, const Runner& runner, const HasHandler& has_handler)
      : target_(target), runner_(runner), has_handler_(has_handler) {}

  void op_cases() {
    for (const OpCase& op_case : testing::op_cases()) {
      const Program program = testing::program_of(op_case);
      if (!takes(program)) {
        report_.refused.push_back(op_case.name);
        continue;
      }
      const Check check = check_of(op_case, program);
      const Tolerance tolerance = testing::tolerance_of(op_case);
      for (const std::uint64_t seed : {0, 1, 2}) {
        const std::vector<Tensor> inputs = testing::inputs_of(op_case, seed);
        compare(check, op_case.name, program, inputs, tolerance);
        if (seed == 0) repeat(op_case.name, program, inputs);
      }
    }
  }

  void products(DType dtype) {
    const std::string of = std::string(mulgrad::to_string(dtype)) + " product, ";
    const double ulp = std::ldexp(1.0, -mantissa_bits(dtype));
    const Tolerance rounded{4 * ulp, 8 * ulp, ZeroSign::free};
    std::mt19937_64 bits(5);
    for (const std::int64_t m : {0, 1, 2}) {
      for (const std::int64_t k : {0, 1, 2}) {
        for (const std::int64_t n : {0, 1, 2}) {
          const Tensor inputs[] = {normal(dtype, {m, k}, bits), normal(dtype, {k, n}, bits)};
          const Check check = m * k * n == 0 ? Check::size_zero : Check::size_one;
          compare(check, of + sizes(m, k, n), product(dtype, m, k, n), inputs, rounded);
        }
      }
    }
    special(dtype, of, rounded);
    stale(dtype, of);
    zeros_and_ones(dtype, of);
    exact(dtype, of, bits);
    precise(dtype, of, bits);
  }

  Report take() { return std::move(report_); }

 private:
  bool takes(const Program& program) const {
    for (const Input& input : program.inputs()) {
      if (target_.interface_refusal(input.type.dtype)) return false;
    }
    for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
      if (target_.refusal(program, i)) return false;
      if (has_handler_ && !has_handler_(program.node(ValueId::node(i)).op)) return false;
    }
    for (const Output& output : program.outputs()) {
      if (target_.interface_refusal(program.type(output.value).dtype)) return false;
    }
    return true;
  }

  static Check check_of(const OpCase& op_case, const Program& program) {
    bool one = true;
    const auto elements = [&](const Type& type) {
      const std::int64_t count = Tensor(type.dtype, type.shape.sizes()).elements();
      one = one && count == 1;
      return count;
    };
    bool none = elements(program.nodes().back().type) == 0;
    for (const Input& input : program.inputs()) none = elements(input.type) == 0 || none;
    if (none) return Check::size_zero;
    for (const auto& operand : op_case.operands) {
      const auto* tensor = std::get_if<testing::CaseOperand>(&operand);
      if (tensor != nullptr && tensor->values == testing::Values::special) {
        return Check::special_values;
      }
    }
    return one ? Check::size_one : Check::op_case;
  }

  void fail(Check check, const std::string& name, std::string text) {
    report_.failures.push_back({check, name, std::move(text)});
  }

  // The outputs, or nothing where the runner has thrown.
  std::optional<std::vector<Tensor>> outputs(Check check, const std::string& name,
                                             const Program& program,
                                             std::span<const Tensor> inputs) {
    try {
      std::vector<Tensor> result = runner_(program, inputs);
      if (result.size() == program.outputs().size()) return result;
      fail(check, name,
           "found " + std::to_string(result.size()) + " outputs, expected " +
               std::to_string(program.outputs().size()));
    } catch (const std::exception& exception) {
      fail(check, name, std::string("it threw: ") + exception.what());
    }
    return std::nullopt;
  }

  // Runs a case, if the target takes it, after `before`, whose outcome nobody looks at.
  void judge(Check check, const std::string& name, const Program& program,
             std::span<const Tensor> inputs, const Judge& judge,
             const std::function<void()>& before = {}) {
    if (!takes(program)) return;
    ++report_.cases[check];
    if (before) before();
    if (const auto found = outputs(check, name, program, inputs)) {
      if (const Verdict wrong = judge(*found)) fail(check, name, *wrong);
    }
  }

  void compare(Check check, const std::string& name, const Program& program,
               std::span<const Tensor> inputs, Tolerance tolerance,
               const std::function<void()>& before = {}) {
    judge(
        check, name, program, inputs,
        [&](std::span<const Tensor> found) -> Verdict {
          const auto outcome = near(found[0], interpret(program, inputs)[0], tolerance);
          if (outcome) return std::nullopt;
          return outcome.message();
        },
        before);
  }

  // The same in every bit, at once and after a run on NaN.
  void repeat(const std::string& name, const Program& program, std::span<const Tensor> inputs) {
    const auto first = outputs(Check::repetition, name, program, inputs);
    if (!first) return;
    const auto same = [&](std::span<const Tensor> found) -> Verdict {
      if (std::ranges::equal(found, *first)) return std::nullopt;
      return "two runs differ";
    };
    judge(Check::repetition, name, program, inputs, same);
    judge(Check::stale_memory, name, program, inputs, same,
          [&] { outputs(Check::stale_memory, name, program, poisoned(inputs)); });
  }

  static std::string sizes(std::int64_t m, std::int64_t k, std::int64_t n) {
    return std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
  }

  static Tensor normal(DType dtype, std::vector<std::int64_t> shape, std::mt19937_64& bits) {
    Tensor result(dtype, std::move(shape));
    std::vector<double> values;
    for (std::int64_t i = 0; i < result.elements(); ++i) {
      // The sum of twelve uniform numbers, less its mean: of variance 1 and near enough to normal.
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += std::ldexp(static_cast<double>(bits() >> 11), -53);
      values.push_back(sum);
    }
    return Tensor::from_doubles(dtype, {result.sizes().begin(), result.sizes().end()}, values);
  }

  // A NaN or an infinity reaches its own row or column of the result, and nothing else; a zero does
  // not hide it.
  void special(DType dtype, const std::string& of, Tolerance tolerance) {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    const struct {
      std::string name;
      std::vector<double> a, b;
    } cases[] = {
        {"NaN on the left", {1, 2, nan, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
        {"NaN on the right", {1, 2, 3, 4, 5, 6}, {1, nan, 3, 4, 5, 6}},
        {"zero times NaN", {0, 2, 0, 4, 0, 6}, {1, nan, 3, 4, 5, 6}},
        {"zero times infinity", {1, 0, 2, 0, 3, 0}, {1, 2, 3, inf, 5, 6}},
        {"NaN times zero", {nan, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0}},
        {"infinity", {inf, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
        {"infinity less infinity", {inf, inf, 3, 4, 5, 6}, {1, 2, -3, 4, -5, -6}},
        {"overflow", {3e38, 3e38, 1, 1, 1, 1}, {3e38, 2, 3, 3e38, 5, 6}},
    };
    for (const auto& item : cases) {
      const Tensor inputs[] = {Tensor::from_doubles(dtype, {3, 2}, item.a),
                               Tensor::from_doubles(dtype, {2, 3}, item.b)};
      compare(Check::special_values, of + item.name, product(dtype, 3, 2, 3), inputs, tolerance);
    }
  }

  // Ones by ones is k, whatever a result of that type held before.
  void stale(DType dtype, const std::string& of) {
    for (const std::int64_t m : {1, 5}) {
      for (const std::int64_t n : {1, 4}) {
        for (const std::int64_t k : {0, 1, 3}) {
          const Tensor inputs[] = {filled(dtype, {m, k}, 1), filled(dtype, {k, n}, 1)};
          compare(Check::stale_memory, of + sizes(m, k, n), product(dtype, m, k, n), inputs, {},
                  [&] {
                    const Tensor ones[] = {filled(dtype, {m, 3}, 1), filled(dtype, {3, n}, 1)};
                    outputs(Check::stale_memory, of + "of NaN", product(dtype, m, 3, n),
                            poisoned(ones));
                  });
        }
      }
    }
  }

  void zeros_and_ones(DType dtype, const std::string& of) {
    const double inf = std::numeric_limits<double>::infinity();
    const std::vector<double> values{-0.0, 1, 0, -inf, std::nan(""), inf};
    const Tolerance either{0, 0, ZeroSign::free};
    const Tensor column[] = {Tensor::from_doubles(dtype, {6, 1}, values), filled(dtype, {1, 3}, 1)};
    compare(Check::zeros_and_ones, of + "a column by ones", product(dtype, 6, 1, 3), column,
            either);
    const Tensor row[] = {filled(dtype, {3, 1}, 1), Tensor::from_doubles(dtype, {1, 6}, values)};
    compare(Check::zeros_and_ones, of + "ones by a row", product(dtype, 3, 1, 6), row, either);
    const Tensor zeros[] = {filled(dtype, {2, 5}, -0.0), filled(dtype, {5, 1}, 1)};
    compare(Check::zeros_and_ones, of + "a sum of zeros", product(dtype, 2, 5, 1), zeros, either);
    const Tensor sum[] = {
        Tensor::from_doubles(dtype, {2, 3}, std::vector<double>{1, -0.0, 2, 0, -1, 0.5}),
        filled(dtype, {3, 1}, 1)};
    compare(Check::zeros_and_ones, of + "a sum of rows", product(dtype, 2, 3, 1), sum, either);
  }

  // Of finite numbers from all over the range, each with all of its bits.
  void exact(DType dtype, const std::string& of, std::mt19937_64& bits) {
    constexpr std::int64_t n = 9;
    const std::vector<std::int64_t> order{4, 7, 0, 8, 2, 1, 6, 3, 5};
    std::vector<double> permutation(n * n), one_hot(4 * n), values;
    for (std::size_t i = 0; i < n; ++i) {
      permutation[i * n + static_cast<std::size_t>(order[i])] = 1;
      if (i < 4) one_hot[i * n + 2 * i] = 1;
    }
    const int exponents = dtype == DType::f32 ? 120 : 1000;
    for (std::int64_t i = 0; i < n * n; ++i) {
      const double mantissa = 1 + std::ldexp(static_cast<double>(bits() >> 11), -53);
      const int exponent = static_cast<int>(bits() % static_cast<std::uint64_t>(2 * exponents));
      values.push_back(std::ldexp((bits() & 1) != 0 ? mantissa : -mantissa, exponent - exponents));
    }
    const Tensor x = Tensor::from_doubles(dtype, {n, n}, values);
    const Tensor p = Tensor::from_doubles(dtype, {n, n}, permutation);
    const Tensor h = Tensor::from_doubles(dtype, {4, n}, one_hot);
    const Tensor rows[] = {p, x};
    compare(Check::exact_products, of + "permuted rows", product(dtype, n, n, n), rows, {});
    const Tensor columns[] = {x, p};
    compare(Check::exact_products, of + "permuted columns", product(dtype, n, n, n), columns, {});
    const Tensor chosen[] = {h, x};
    compare(Check::exact_products, of + "one-hot rows", product(dtype, 4, n, n), chosen, {});
  }

  void precise(DType dtype, const std::string& of, std::mt19937_64& bits) {
    const double ulp = std::ldexp(1.0, -mantissa_bits(dtype));
    for (const double value : {1024.5, 1 + ulp, 2 - ulp, 1.0 / 3}) {
      const Tensor inputs[] = {filled(dtype, {1, 1}, 1), filled(dtype, {1, 1}, value)};
      compare(Check::precision, of + "1 by " + std::to_string(value), product(dtype, 1, 1, 1),
              inputs, {});
    }
    square(dtype, of, bits);
    for (const std::int64_t n : {1 << 10, 1 << 16, 1 << 20}) long_sum(dtype, of, n, bits);
  }

  // Normals: 512 x 512 in f32 within 1e-6 of |A| |B| (measured with a BLAS: 1.7e-7), fewer in f64.
  void square(DType dtype, const std::string& of, std::mt19937_64& bits) {
    const std::int64_t n = dtype == DType::f32 && !testing::kSanitized ? 512 : 128;
    const Tensor inputs[] = {normal(dtype, {n, n}, bits), normal(dtype, {n, n}, bits)};
    const double bound = dtype == DType::f32 ? 1e-6 : 1e-14;
    const auto judge_it = [&](std::span<const Tensor> found) -> Verdict {
      const std::vector<double> a = inputs[0].to_doubles();
      const std::vector<double> b = inputs[1].to_doubles();
      const std::vector<double> got = found[0].to_doubles();
      if (!(found[0].type() == inputs[0].type())) return "found another type than the operands'";
      const auto size = static_cast<std::size_t>(n);
      std::vector<double> want(size), scale(size);
      for (std::size_t i = 0; i < size; ++i) {
        std::ranges::fill(want, 0);
        std::ranges::fill(scale, 0);
        for (std::size_t k = 0; k < size; ++k) {
          for (std::size_t j = 0; j < size; ++j) {
            const double term = a[i * size + k] * b[k * size + j];
            want[j] += term;
            scale[j] += std::fabs(term);
          }
        }
        for (std::size_t j = 0; j < size; ++j) {
          const double error = std::fabs(got[i * size + j] - want[j]) / scale[j];
          if (!(error <= bound)) {
            return "found an error of " + std::to_string(error / bound) + " times the " +
                   "allowed one of |A| |B|";
          }
        }
      }
      return std::nullopt;
    };
    judge(Check::precision, of + sizes(n, n, n) + " normals", product(dtype, n, n, n), inputs,
          judge_it);
  }

  // The sum of n uniform numbers as a product with ones.
  void long_sum(DType dtype, const std::string& of, std::int64_t n, std::mt19937_64& bits) {
    std::vector<double> values;
    double exact = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      values.push_back(std::ldexp(static_cast<double>(bits() >> 40), -24));
      exact += values.back();
    }
    const Tensor inputs[] = {Tensor::from_doubles(dtype, {1, n}, values), filled(dtype, {n, 1}, 1)};
    const double bound = dtype == DType::f32 ? 2e-6 : 1e-13;
    judge(Check::precision, of + "a sum of " + std::to_string(n), product(dtype, 1, n, 1), inputs,
          [&](std::span<const Tensor> found) -> Verdict {
            const double error = std::fabs(found[0].to_doubles().at(0) / exact - 1);
            if (error <= bound) return std::nullopt;
            return "found a relative error of " + std::to_string(error / bound) +
                   " times the allowed one";
          });
  }

  const Target& target_;
  const Runner& runner_;
  const HasHandler& has_handler_;
  Report report_;
};

}  // namespace

std::string_view to_string(Check check) {
  constexpr std::string_view kNames[] = {"op case",        "special values", "size zero",
                                         "size one",       "stale memory",   "zeros and ones",
                                         "exact products", "precision",      "repetition"};
  return kNames[static_cast<int>(check)];
}

std::vector<Check> Report::failed() const {
  std::vector<Check> result;
  for (const Check check : kChecks) {
    if (std::ranges::find(failures, check, &Failure::check) != failures.end()) {
      result.push_back(check);
    }
  }
  return result;
}

std::string Report::to_string() const {
  std::string text;
  for (const Check check : kChecks) {
    const auto found = cases.find(check);
    const auto wrong = std::ranges::count(failures, check, &Failure::check);
    text += std::string(conformance::to_string(check)) + ": " +
            std::to_string(found == cases.end() ? 0 : found->second) + " cases, " +
            std::to_string(wrong) + " failures\n";
  }
  text += std::to_string(refused.size()) + " op cases are not taken by the target\n";
  for (const Failure& failure : failures) {
    text += std::string(conformance::to_string(failure.check)) + ": " + failure.name + ": " +
            failure.text + "\n";
  }
  return text;
}

Report run(const Target& target, const Runner& runner, const HasHandler& has_handler) {
  Kit kit(target, runner, has_handler);
  kit.op_cases();
  for (const DType dtype : {DType::f32, DType::f64}) kit.products(dtype);
  return kit.take();
}

}  // namespace mulgrad::conformance
