#include "examples/custom_backend/check_ops.h"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "core/interpreter.h"
#include "examples/custom_backend/emitter.h"
#include "lowering/target.h"

namespace mulgrad::examples {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
// The last but one is subnormal in f32; the third power of the last overflows there.
constexpr double kAwkward[] = {kNan, kInf, -kInf, 0., -0., 1., -1.5, 2.5, .5, -.5, 3e-40, 1e30};
constexpr std::int64_t kCount = std::size(kAwkward);

// Outputs whose names begin so may differ by a few units in the last place.
constexpr std::string_view kRounded = "math.";

// Inputs: x and y, all pairs of awkward values; s, rank 0; m, finite; n, integers.
Program all_ops_program(DType dtype) {
  Tape tape(std::string(to_string(dtype)));
  const Shape square{kCount, kCount};
  const Var x = tape.input("x", {dtype, square});
  const Var y = tape.input("y", {dtype, square});
  const Var s = tape.input("s", {dtype, {}});
  const Var m = tape.input("m", {dtype, {3, 5}});
  const Var n = tape.input("n", {DType::i64, {4}});
  const auto exact = [&](const std::string& name, Var value) { tape.output(name, value); };
  const auto math = [&](const std::string& name, Var value) { tape.output("math." + name, value); };
  // i1 is no output of this target; 0 and 1 are.
  const auto truth = [&](const std::string& name, Var value) {
    tape.output(name, convert(value, dtype));
  };
  exact("negate", -x);
  exact("abs", abs(x));
  exact("sign", sign(x));
  exact("sqrt", sqrt(x));
  exact("floor", floor(x));
  exact("ceil", ceil(x));
  exact("round_nearest_even", round_nearest_even(x));
  math("exp", exp(x));
  math("expm1", expm1(x));
  math("log", log(x));
  math("log1p", log1p(x));
  math("rsqrt", rsqrt(x));
  math("tanh", tanh(x));
  math("logistic", logistic(x));
  math("sin", sin(x));
  math("cos", cos(x));
  math("erf", erf(x));
  math("pow", pow(x, y));
  exact("add", x + y);
  exact("add_scalar", x + s);
  exact("subtract", x - y);
  exact("subtract_from_literal", 1.5 - x);
  exact("multiply", x * y);
  exact("multiply_literal", x * 0.1);
  exact("divide", x / y);
  exact("divide_scalar_by", s / x);
  exact("maximum", maximum(x, y));
  exact("maximum_literal", maximum(x, 0.0));
  exact("minimum", minimum(x, y));
  exact("minimum_scalar", minimum(x, s));
  exact("clamp", clamp(-1.0, x, y));
  exact("select", select(compare(Comparison::LT, x, y), x, 7.0));
  exact("rank_0", s * s + 0.3);
  for (const Comparison direction : {Comparison::EQ, Comparison::NE, Comparison::LT, Comparison::LE,
                                     Comparison::GT, Comparison::GE}) {
    truth("compare_" + std::string(to_string(direction)), compare(direction, x, y));
  }
  const Var finite = is_finite(x);
  const Var positive = compare(Comparison::GT, y, 0.0);
  truth("is_finite", finite);
  truth("not", logical_not(finite));
  truth("and", logical_and(finite, positive));
  truth("or", logical_or(finite, positive));
  exact("convert_narrow", convert(x, DType::f32));
  exact("convert_wide", convert(x, DType::f64));
  exact("convert_integer", convert(n, dtype));
  exact("fill", fill(tape.builder(), Literal::from_double(dtype, 0.1), {2, 3}));
  exact("constant", constant(tape.builder(), Tensor::from_doubles(dtype, {kCount}, kAwkward)));
  exact("reshape", reshape(m, {5, 1, 3}));
  exact("transpose", transpose(m));
  exact("transpose_rank_3", transpose(reshape(m, {5, 1, 3}), {2, 0, 1}));
  math("dot_general", matmul(m, transpose(m)));
  exact("input", x);
  return tape.finish();
}

std::vector<Tensor> all_ops_inputs(DType dtype) {
  std::vector<double> x;
  std::vector<double> y;
  for (const double a : kAwkward) {
    for (const double b : kAwkward) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  std::vector<double> m;
  for (int i = 0; i < 15; ++i) m.push_back(1 + i / 7.0);
  return {Tensor::from_doubles(dtype, {kCount, kCount}, x),
          Tensor::from_doubles(dtype, {kCount, kCount}, y),
          Tensor::from_doubles(dtype, {}, std::vector<double>{-2.25}),
          Tensor::from_doubles(dtype, {3, 5}, m),
          Tensor::of<std::int64_t>({4}, {0, -7, 16777217, std::int64_t{1} << 62})};
}

bool agree(const Tensor& got, const Tensor& want, int ulps) {
  const double unit = got.dtype() == DType::f32 ? std::numeric_limits<float>::epsilon()
                                                : std::numeric_limits<double>::epsilon();
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double a = got.element(i).as_double();
    const double b = want.element(i).as_double();
    if (std::isnan(a) && std::isnan(b)) continue;
    const bool equal = a == b && std::signbit(a) == std::signbit(b);
    const bool near = a != b && std::isfinite(b) && std::abs(a - b) <= ulps * unit * std::abs(b);
    if (!equal && !near) return false;
  }
  return true;
}

}  // namespace

std::string c_check_ops() {
  std::string text;
  const Target target = Target::matmul_only();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Program program = all_ops_program(dtype);
    for (const OpInfo& op : all_ops()) {
      bool found = false;
      for (const Node& node : program.nodes()) found = found || kind_of(node.op) == op.kind;
      INTERNAL_CHECK(found == target.has(op.kind));
    }
    INTERNAL_CHECK(!only_target_ops(target).violation(program));
    const Artifact artifact = Artifact::untouched(program.name(), program);
    CUnit unit("ops");
    const Lowered<CValue> lowered = lower(artifact, unit.handlers(), unit.inputs());
    text += unit.finish(artifact, lowered);
    text += c_entry(unit.function(artifact), program.inputs().size() + program.outputs().size());
  }
  return text;
}

std::string check_ops(const CLibrary& library) {
  std::string faults;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Program program = all_ops_program(dtype);
    std::vector<Tensor> inputs = all_ops_inputs(dtype);
    const std::vector<Tensor> want = interpret(program, inputs);
    std::vector<Tensor> got;
    for (const Tensor& tensor : want) {
      got.emplace_back(tensor.dtype(), std::vector(tensor.sizes().begin(), tensor.sizes().end()));
    }
    std::vector<void*> arguments;
    for (Tensor& tensor : inputs) arguments.push_back(tensor.bytes().data());
    for (Tensor& tensor : got) arguments.push_back(tensor.bytes().data());
    library.call("ops_" + program.name() + "_run", arguments);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::string& name = program.outputs()[i].name;
      if (agree(got[i], want[i], name.starts_with(kRounded) ? 4 : 0)) continue;
      faults += program.name() + " " + name + " differs from the interpreter\n";
    }
  }
  return faults;
}

}  // namespace mulgrad::examples
