#include "examples/custom_backend/emitter.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <utility>

namespace mulgrad::examples {
namespace {

// What an elementwise op computes. $0, $1, $2 are the elements of the operands, $f the suffix that
// C's mathematical functions have for float, $T the C type of the result.
struct Formula {
  OpKind kind;
  std::string_view text;
};
constexpr Formula kFormulas[] = {
    {OpKind::Negate, "-$0"},
    {OpKind::Abs, "fabs$f($0)"},
    {OpKind::Sign, "sign$f($0)"},
    {OpKind::Exponential, "exp$f($0)"},
    {OpKind::ExponentialMinusOne, "expm1$f($0)"},
    {OpKind::Log, "log$f($0)"},
    {OpKind::LogPlusOne, "log1p$f($0)"},
    {OpKind::Sqrt, "sqrt$f($0)"},
    {OpKind::Rsqrt, "1 / sqrt$f($0)"},
    {OpKind::Tanh, "tanh$f($0)"},
    {OpKind::Logistic, "logistic$f($0)"},
    {OpKind::Sine, "sin$f($0)"},
    {OpKind::Cosine, "cos$f($0)"},
    {OpKind::Floor, "floor$f($0)"},
    {OpKind::Ceil, "ceil$f($0)"},
    {OpKind::RoundNearestEven, "nearbyint$f($0)"},  // C starts in the mode of that name
    {OpKind::Not, "!$0"},
    {OpKind::IsFinite, "isfinite($0) != 0"},
    {OpKind::Erf, "erf$f($0)"},
    {OpKind::Convert, "($T)$0"},
    {OpKind::Add, "$0 + $1"},
    {OpKind::Subtract, "$0 - $1"},
    {OpKind::Multiply, "$0 * $1"},
    {OpKind::Divide, "$0 / $1"},
    {OpKind::Maximum, "maximum$f($0, $1)"},
    {OpKind::Minimum, "minimum$f($0, $1)"},
    {OpKind::Power, "pow$f($0, $1)"},
    {OpKind::And, "$0 & $1"},
    {OpKind::Or, "$0 | $1"},
    {OpKind::Select, "$0 ? $1 : $2"},
    {OpKind::Clamp, "minimum$f(maximum$f($1, $0), $2)"},
};

std::string_view comparison(Comparison direction) {
  switch (direction) {
    case Comparison::EQ:
      return "$0 == $1";
    case Comparison::NE:
      return "$0 != $1";
    case Comparison::LT:
      return "$0 < $1";
    case Comparison::LE:
      return "$0 <= $1";
    case Comparison::GT:
      return "$0 > $1";
    case Comparison::GE:
      return "$0 >= $1";
  }
  internal_check_failed("a comparison", __FILE__, __LINE__);
}

// Where C's own fmax would drop a NaN, these keep it; and +0 is above -0.
constexpr std::string_view kHelpers = R"(
static inline $T sign$f($T x) { return x != x || x == 0 ? x : x > 0 ? 1 : -1; }
static inline $T maximum$f($T a, $T b) {
  return a != a || b != b ? a + b : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static inline $T minimum$f($T a, $T b) {
  return a != a || b != b ? a + b : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static inline $T logistic$f($T x) {
  const $T e = exp$f(-fabs$f(x)); /* at most 1: never overflows */
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
)";

std::string replace_all(std::string_view text, std::string_view what, std::string_view by) {
  std::string result;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what)) {
    result.append(text.substr(0, at)).append(by);
    text.remove_prefix(at + what.size());
  }
  return result.append(text);
}

// Hexadecimal, so that C reads exactly the bits.
std::string c_literal(const Literal& literal) {
  const double value = literal.as_double();
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  char text[40];
  std::snprintf(text, sizeof text, literal.dtype == DType::f32 ? "%af" : "%a", value);
  return text;
}

std::string number(std::int64_t value) { return std::to_string(value); }

// "for (long i = 0; i < 32; ++i) ".
std::string loop(std::string_view index, std::int64_t count) {
  const std::string i(index);
  return "for (long " + i + " = 0; " + i + " < " + number(count) + "; ++" + i + ") ";
}

std::string element(const HandlerOperand<CValue>& operand) {
  if (operand.is_literal()) return c_literal(operand.literal());
  return operand.value().array() + (operand.type().rank() == 0 ? "[0]" : "[i]");
}

std::int64_t elements(const Type& type) { return type.shape.elements().size(); }

}  // namespace

std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i1:
      return "unsigned char";
    case DType::i8:
      return "int8_t";
    case DType::i16:
      return "int16_t";
    case DType::i32:
      return "int32_t";
    case DType::i64:
      return "int64_t";
    case DType::u8:
      return "uint8_t";
    case DType::u16:
      return "uint16_t";
    case DType::u32:
      return "uint32_t";
    case DType::u64:
      return "uint64_t";
    case DType::bf16:
    case DType::f16:
      break;
  }
  throw Error(Category::unsupported_operator,
              "C99 has no type for " + std::string(to_string(dtype)));
}

std::string c_name(std::string_view name) {
  std::string result(name);
  std::ranges::replace_if(
      result, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return result;
}

std::string c_array(const Type& type, std::string_view name) {
  // C has no array without elements.
  return std::string(c_type(type.dtype)) + " " + std::string(name) + "[" +
         number(std::max<std::int64_t>(elements(type), 1)) + "]";
}

std::string c_prelude() {
  std::string text = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n";
  text += replace_all(replace_all(kHelpers, "$f", "f"), "$T", "float");
  text += replace_all(replace_all(kHelpers, "$f", ""), "$T", "double");
  return text;
}

std::string c_entry(const std::string& function, std::size_t count) {
  std::string text = "\nvoid " + function + "_run(void* const* a) {\n  " + function + "(";
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : i % 12 == 0 ? ",\n      " : ", ") + ("a[" + std::to_string(i) + "]");
  }
  return text + ");\n}\n";
}

HandlerRegistry<CValue> CUnit::handlers() {
  HandlerRegistry<CValue> registry;
  for (const Formula& formula : kFormulas) {
    registry.add(formula.kind, [this, formula](const HandlerContext& context, Operands operands) {
      return elementwise(context, operands, formula.text);
    });
  }
  registry.add<Compare>([this](const HandlerContext& context, Operands operands) {
    const auto& compare = std::get<Compare>(context.node().op);
    return elementwise(context, operands, comparison(compare.direction));
  });
  registry.add<Fill>([this](const HandlerContext& context, Operands operands) {
    return elementwise(context, operands, c_literal(std::get<Fill>(context.node().op).value));
  });
  registry.add(OpKind::Constant,
               [this](const HandlerContext& context, Operands) { return constant(context); });
  registry.add<DotGeneral>([this](const HandlerContext& context, Operands operands) {
    return product(context, operands);
  });
  registry.add<Transpose>([this](const HandlerContext& context, Operands operands) {
    return transpose(context, operands);
  });
  // Row-major elements stay where they are: the same array under another shape.
  registry.add<Reshape>([](const HandlerContext&, Operands operands) {
    const CValue& same = operands[0].value();
    return CValue(same.array(), same.owner());
  });
  return registry;
}

InputHandler<CValue> CUnit::inputs() {
  return [](const InputContext& context) {
    return CValue("in" + number(context.index) + "_" + c_name(context.input().name), Owner::caller);
  };
}

std::string CUnit::function(const Artifact& artifact) const {
  return prefix_ + "_" + c_name(artifact.name);
}

CValue CUnit::declare(const HandlerContext& context) {
  Body& b = body(context.artifact);
  CValue result("t" + number(b.arrays++), Owner::function);
  b.statements += "\n  /* " + context.label() + " */\n  static " +
                  c_array(context.node().type, result.array()) + ";\n  ";
  return result;
}

CValue CUnit::elementwise(const HandlerContext& context, Operands operands,
                          std::string_view formula) {
  const Type& type = context.node().type;
  const DType computed_in = operands.empty() ? type.dtype : operands.back().dtype();
  std::string text = replace_all(formula, "$T", c_type(type.dtype));
  text = replace_all(text, "$f", computed_in == DType::f32 ? "f" : "");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    text = replace_all(text, "$" + std::to_string(i), element(operands[i]));
  }
  if (std::holds_alternative<Convert>(context.node().op) && type.dtype == DType::i1) {
    text = element(operands[0]) + " != 0";  // a cast would drop the fraction
  }
  CValue result = declare(context);
  const std::string target = result.array() + (type.rank() == 0 ? "[0]" : "[i]");
  const std::string head = type.rank() == 0 ? "" : loop("i", elements(type));
  body(context.artifact).statements += head + target + " = " + text + ";\n";
  return result;
}

CValue CUnit::constant(const HandlerContext& context) {
  Body& b = body(context.artifact);
  const Tensor& tensor = *std::get<Constant>(context.node().op).value;
  CValue result(function(context.artifact) + "_k" + number(b.arrays++), Owner::function);
  b.constants += "/* " + context.label() + " */\nstatic const " +
                 c_array(context.node().type, result.array()) + " = {";
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    b.constants += (i % 8 == 0 ? "\n    " : " ") + c_literal(tensor.element(i)) + ",";
  }
  b.constants += "\n};\n";
  return result;
}

// The target takes plain products alone: [rows, terms] by [terms, columns].
CValue CUnit::product(const HandlerContext& context, Operands operands) {
  const Shape& lhs = operands[0].type().shape;
  const Shape& rhs = operands[1].type().shape;
  const std::string terms = number(lhs[1].size());
  const std::string columns = number(rhs[1].size());
  const std::string type(c_type(context.node().type.dtype));
  CValue result = declare(context);
  body(context.artifact).statements +=
      loop("i", lhs[0].size()) + "{\n    " + loop("j", rhs[1].size()) + "{\n      " + type +
      " sum = 0;\n      " + loop("k", lhs[1].size()) + "sum += " + operands[0].value().array() +
      "[i * " + terms + " + k] * " + operands[1].value().array() + "[k * " + columns +
      " + j];\n      " + result.array() + "[i * " + columns + " + j] = sum;\n    }\n  }\n";
  return result;
}

CValue CUnit::transpose(const HandlerContext& context, Operands operands) {
  const std::vector<std::int64_t> sizes = operands[0].type().shape.sizes();
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t axis = sizes.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * sizes[axis];
  }
  std::string loops;
  std::string to = "0";  // Horner's scheme over the axes of the result
  std::string from = "0";
  const Axes& permutation = std::get<Transpose>(context.node().op).permutation;
  for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
    const auto source = static_cast<std::size_t>(permutation[axis]);
    const std::string index = "i" + std::to_string(axis);
    loops += loop(index, sizes[source]);
    to = axis == 0 ? index : "(" + to + ") * " + number(sizes[source]) + " + " + index;
    from += " + " + index + " * " + number(strides[source]);
  }
  CValue result = declare(context);
  body(context.artifact).statements += loops + result.array() + "[" + to +
                                       "] = " + operands[0].value().array() + "[" + from + "];\n";
  return result;
}

std::string CUnit::finish(const Artifact& artifact, const Lowered<CValue>& lowered) {
  const Program& program = artifact.program;
  const Body b = std::exchange(body(artifact), {});
  std::vector<std::string> parameters;
  for (std::int64_t i = 0; i < std::ssize(program.inputs()); ++i) {
    const CValue input = inputs()({artifact, i});
    parameters.push_back(
        "const " + c_array(program.inputs()[static_cast<std::size_t>(i)].type, input.array()));
  }
  std::string copies;
  std::string kept;
  for (std::size_t i = 0; i < program.outputs().size(); ++i) {
    const Output& output = program.outputs()[i];
    const Type& type = program.type(output.value);
    const std::string to = "out" + std::to_string(i) + "_" + c_name(output.name);
    const std::string bytes =
        number(elements(type)) + " * sizeof(" + std::string(c_type(type.dtype)) + ")";
    std::string from = lowered.output(i).array();
    if (lowered.output(i).owner() == Owner::caller) {  // an output may be written there first
      kept += "  static " + c_array(type, "kept" + std::to_string(i)) + ";\n  memcpy(kept" +
              std::to_string(i) + ", " + from + ", " + bytes + ");\n";
      from = "kept" + std::to_string(i);
    }
    parameters.push_back(c_array(type, to));
    copies += "  memcpy(" + to + ", " + from + ", " + bytes + ");\n";
  }
  std::string text = "\n" + b.constants + "static void " + function(artifact) + "(";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    text += (i > 0 ? "," : "") + std::string("\n    ") + parameters[i];
  }
  return text + ") {" + b.statements + "\n" + kept + copies + "}\n";
}

}  // namespace mulgrad::examples
