#include "core/text.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>

#include "core/builder.h"
#include "core/text_places.h"
#include "tests/support/op_cases.h"

namespace mulgrad {
namespace {

using testing::case_customs;

ParseOptions with_customs() { return {.file = "t.mlir", .customs = case_customs()}; }

Program parse_back(const Program& program) { return parse(print(program), with_customs()); }

ValueId arg(std::int64_t index) { return ValueId::input(index); }

Literal f32(double value) { return Literal::from_double(DType::f32, value); }

std::shared_ptr<const Tensor> shared(Tensor tensor) {
  return std::make_shared<const Tensor>(std::move(tensor));
}

// The inputs that the golden lines below read.
Builder golden_inputs() {
  Builder builder;
  const Dim b = Dim::symbol("B");
  builder.input("x", {DType::f32, {2, 3}});       // %arg0
  builder.input("y", {DType::f32, {2, 3}});       // %arg1
  builder.input("p", {DType::i1, {2, 3}});        // %arg2
  builder.input("s", {DType::f32, {}});           // %arg3
  builder.input("i", {DType::i32, {2, 3}});       // %arg4
  builder.input("u", {DType::u32, {2, 3}});       // %arg5
  builder.input("b", {DType::f32, {b, 3}});       // %arg6
  builder.input("column", {DType::f32, {2, 1}});  // %arg7
  builder.input("q", {DType::i1, {}});            // %arg8
  builder.input("c", {DType::f32, {5, 2, 3}});    // %arg9
  builder.input("d", {DType::bf16, {5, 3, 4}});   // %arg10
  builder.input("e", {DType::bf16, {5, 2, 3}});   // %arg11
  return builder;
}

struct Golden {
  Op op;
  std::vector<Operand> operands;
  std::string line;
};

std::vector<Golden> goldens() {
  const Dim b = Dim::symbol("B");
  const std::string t = " : tensor<2x3xf32>";
  std::vector<Golden> table = {
      {Fill{f32(0.1), {2, 3}}, {}, "stablehlo.constant dense<1.0e-01>" + t},
      {Fill{f32(15), {b, 3}}, {}, "stablehlo.constant dense<1.5e+01> : tensor<[B]x3xf32>"},
      {Fill{Literal::of(true), {}}, {}, "stablehlo.constant dense<true> : tensor<i1>"},
      {Fill{Literal::zero(DType::i8), {0, 4}}, {}, "stablehlo.constant dense<0> : tensor<0x4xi8>"},
      {Constant{shared(Tensor::of<float>({2, 2}, {1, -2, 0.5, -0.0F}))},
       {},
       "stablehlo.constant dense<[[1.0e+00, -2.0e+00], [5.0e-01, -0.0e+00]]> : tensor<2x2xf32>"},
      {Constant{shared(Tensor::of<std::int64_t>({3}, {1, -2, std::int64_t{1} << 62}))},
       {},
       "stablehlo.constant dense<[1, -2, 4611686018427387904]> : tensor<3xi64>"},
      {Constant{shared(Tensor::of<bool>({1, 2, 1}, {true, false}))},
       {},
       "stablehlo.constant dense<[[[true], [false]]]> : tensor<1x2x1xi1>"},
      {Iota{DType::i32, {2, b}, 1}, {}, "stablehlo.iota dim = 1 : tensor<2x[B]xi32>"},
      {Negate{}, {arg(0)}, "stablehlo.negate %arg0" + t},
      {Abs{}, {arg(0)}, "stablehlo.abs %arg0" + t},
      {Sign{}, {arg(0)}, "stablehlo.sign %arg0" + t},
      {Exponential{}, {arg(0)}, "stablehlo.exponential %arg0" + t},
      {ExponentialMinusOne{}, {arg(0)}, "stablehlo.exponential_minus_one %arg0" + t},
      {Log{}, {arg(0)}, "stablehlo.log %arg0" + t},
      {LogPlusOne{}, {arg(0)}, "stablehlo.log_plus_one %arg0" + t},
      {Sqrt{}, {arg(0)}, "stablehlo.sqrt %arg0" + t},
      {Rsqrt{}, {arg(0)}, "stablehlo.rsqrt %arg0" + t},
      {Tanh{}, {arg(0)}, "stablehlo.tanh %arg0" + t},
      {Logistic{}, {arg(0)}, "stablehlo.logistic %arg0" + t},
      {Sine{}, {arg(0)}, "stablehlo.sine %arg0" + t},
      {Cosine{}, {arg(0)}, "stablehlo.cosine %arg0" + t},
      {Floor{}, {arg(0)}, "stablehlo.floor %arg0" + t},
      {Ceil{}, {arg(0)}, "stablehlo.ceil %arg0" + t},
      {RoundNearestEven{}, {arg(0)}, "stablehlo.round_nearest_even %arg0" + t},
      {Not{}, {arg(2)}, "stablehlo.not %arg2 : tensor<2x3xi1>"},
      {IsFinite{}, {arg(0)}, "stablehlo.is_finite %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi1>"},
      {Erf{}, {arg(6)}, "chlo.erf %arg6 : tensor<[B]x3xf32> -> tensor<[B]x3xf32>"},
      {Convert{DType::u32},
       {arg(0)},
       "stablehlo.convert %arg0 : (tensor<2x3xf32>) -> "
       "tensor<2x3xui32>"},
      {Convert{DType::f32}, {arg(0)}, "stablehlo.convert %arg0" + t},
      {StopGradient{}, {arg(0)}, "mulgrad.stop_gradient %arg0" + t},
      {Add{}, {arg(0), arg(1)}, "stablehlo.add %arg0, %arg1" + t},
      {Add{}, {arg(0), f32(15)}, "stablehlo.add %arg0, 1.5e+01" + t},
      {Add{},
       {arg(0), arg(3)},
       "stablehlo.add %arg0, %arg3 : (tensor<2x3xf32>, tensor<f32>) -> "
       "tensor<2x3xf32>"},
      {Add{},
       {arg(7), arg(0)},
       "stablehlo.add %arg7, %arg0 : (tensor<2x1xf32>, tensor<2x3xf32>) "
       "-> tensor<2x3xf32>"},
      {Subtract{}, {f32(1), arg(0)}, "stablehlo.subtract 1.0e+00, %arg0" + t},
      {Multiply{},
       {arg(5), Literal::from_int(DType::u32, 4294967295)},
       "stablehlo.multiply %arg5, 4294967295 : tensor<2x3xui32>"},
      {Divide{},
       {arg(4), Literal::from_int(DType::i32, -7)},
       "stablehlo.divide %arg4, -7 : tensor<2x3xi32>"},
      {Maximum{},
       {arg(0), Literal::infinity(DType::f32, true)},
       "stablehlo.maximum %arg0, 0xFF800000" + t},
      {Minimum{}, {arg(0), arg(1)}, "stablehlo.minimum %arg0, %arg1" + t},
      {Power{}, {arg(0), f32(2)}, "stablehlo.power %arg0, 2.0e+00" + t},
      {And{},
       {arg(2), arg(8)},
       "stablehlo.and %arg2, %arg8 : (tensor<2x3xi1>, tensor<i1>) -> "
       "tensor<2x3xi1>"},
      {Or{}, {arg(2), arg(2)}, "stablehlo.or %arg2, %arg2 : tensor<2x3xi1>"},
      {Compare{Comparison::LT},
       {arg(0), f32(0)},
       "stablehlo.compare LT, %arg0, 0.0e+00, FLOAT : (tensor<2x3xf32>) -> tensor<2x3xi1>"},
      {Compare{Comparison::GE},
       {arg(4), arg(4)},
       "stablehlo.compare GE, %arg4, %arg4, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> "
       "tensor<2x3xi1>"},
      {Compare{Comparison::NE},
       {Literal::from_int(DType::u32, 3), arg(5)},
       "stablehlo.compare NE, 3, %arg5, UNSIGNED : (tensor<2x3xui32>) -> tensor<2x3xi1>"},
      {Compare{Comparison::EQ},
       {arg(2), arg(2)},
       "stablehlo.compare EQ, %arg2, %arg2, UNSIGNED : (tensor<2x3xi1>, tensor<2x3xi1>) -> "
       "tensor<2x3xi1>"},
      {Select{},
       {arg(2), arg(0), f32(0)},
       "stablehlo.select %arg2, %arg0, 0.0e+00 : tensor<2x3xi1>, tensor<2x3xf32>"},
      {Select{},
       {arg(8), arg(0), arg(1)},
       "stablehlo.select %arg8, %arg0, %arg1 : tensor<i1>, tensor<2x3xf32>"},
      {Select{},
       {arg(2), arg(3), f32(1)},
       "stablehlo.select %arg2, %arg3, 1.0e+00 : (tensor<2x3xi1>, tensor<f32>) -> "
       "tensor<2x3xf32>"},
      {Clamp{}, {f32(0), arg(0), f32(6)}, "stablehlo.clamp 0.0e+00, %arg0, 6.0e+00" + t},
      {Clamp{},
       {arg(3), arg(0), arg(1)},
       "stablehlo.clamp %arg3, %arg0, %arg1 : (tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xf32>"},
      {BroadcastInDim{{4, 2, b}, {1, 2}},
       {arg(7)},
       "stablehlo.broadcast_in_dim %arg7, dims = [1, 2] : (tensor<2x1xf32>) -> "
       "tensor<4x2x[B]xf32>"},
      {BroadcastInDim{{2, 3}, {}},
       {arg(3)},
       "stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<2x3xf32>"},
      {Reshape{{Dim(3) * b}},
       {arg(6)},
       "stablehlo.reshape %arg6 : (tensor<[B]x3xf32>) -> tensor<[3*B]xf32>"},
      {Transpose{{2, 0, 1}},
       {arg(9)},
       "stablehlo.transpose %arg9, dims = [2, 0, 1] : (tensor<5x2x3xf32>) -> tensor<3x5x2xf32>"},
      {Slice{{1, 0, 0}, {5, 1, 3}, {2, 1, 3}},
       {arg(9)},
       "stablehlo.slice %arg9 [1:5:2, 0:1, 0:3:3] : (tensor<5x2x3xf32>) -> tensor<2x1x1xf32>"},
      {Slice{{0, 1}, {b, 2}, {1, 1}},
       {arg(6)},
       "stablehlo.slice %arg6 [0:[B], 1:2] : (tensor<[B]x3xf32>) -> tensor<[B]x1xf32>"},
      {Concatenate{1},
       {arg(0), arg(7), arg(0)},
       "stablehlo.concatenate %arg0, %arg7, %arg0, dim = 1 : (tensor<2x3xf32>, tensor<2x1xf32>, "
       "tensor<2x3xf32>) -> tensor<2x7xf32>"},
      {Pad{{-1, 0}, {2, 4}, {0, 1}},
       {arg(0), arg(3)},
       "stablehlo.pad %arg0, %arg3, low = [-1, 0], high = [2, 4], interior = [0, 1] : "
       "(tensor<2x3xf32>, tensor<f32>) -> tensor<3x9xf32>"},
      {Mean{{0, 1}, true},
       {arg(0)},
       "mulgrad.mean %arg0 across dimensions = [0, 1] {keepdims = true} : (tensor<2x3xf32>) -> "
       "tensor<1x1xf32>"},
      {Mean{{1}, false},
       {arg(6)},
       "mulgrad.mean %arg6 across dimensions = [1] : (tensor<[B]x3xf32>) -> tensor<[B]xf32>"},
      {DotGeneral{{}, {}, {1}, {1}, DType::f32},
       {arg(0), arg(1)},
       "stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<2x3xf32>, "
       "tensor<2x3xf32>) -> tensor<2x2xf32>"},
      {DotGeneral{{0}, {0}, {2}, {1}, DType::f32},
       {arg(11), arg(10)},
       "stablehlo.dot_general %arg11, %arg10, batching_dims = [0] x [0], contracting_dims = [2] x "
       "[1] : (tensor<5x2x3xbf16>, tensor<5x3x4xbf16>) -> tensor<5x2x4xf32>"},
      {DotGeneral{{}, {}, {}, {}, DType::f32},
       {arg(3), arg(3)},
       "stablehlo.dot_general %arg3, %arg3, contracting_dims = [] x [] : (tensor<f32>, "
       "tensor<f32>) -> tensor<f32>"},
  };
  const std::pair<Reduction, std::string> numbers[] = {{Reduction::sum, "add"},
                                                       {Reduction::max, "maximum"},
                                                       {Reduction::min, "minimum"},
                                                       {Reduction::product, "multiply"}};
  for (const auto& [kind, name] : numbers) {
    table.push_back({Reduce{kind, {0, 1}},
                     {arg(0)},
                     "stablehlo.reduce(%arg0) applies stablehlo." + name +
                         " across dimensions = [0, 1] : (tensor<2x3xf32>) -> tensor<f32>"});
  }
  for (const auto& [kind, name] :
       {std::pair{Reduction::and_, "and"}, std::pair{Reduction::or_, "or"}}) {
    table.push_back({Reduce{kind, {1}},
                     {arg(2)},
                     std::string("stablehlo.reduce(%arg2) applies stablehlo.") + name +
                         " across dimensions = [1] : (tensor<2x3xi1>) -> tensor<2xi1>"});
  }
  return table;
}

// Hands back its first operand's type, and keeps its attributes to itself.
class Same : public CustomDefinition {
 public:
  using CustomDefinition::CustomDefinition;
  Type infer(const std::string&, std::span<const Type> operands) const override {
    return operands.empty() ? Type{} : operands[0];
  }
  Tensor evaluate(const std::string&, std::span<const Tensor> operands) const override {
    return operands.empty() ? Tensor::scalar(0.0F) : operands[0];
  }
};

CustomRegistry registry_of(const std::vector<std::string>& names) {
  CustomRegistry registry;
  for (const std::string& name : names) registry[name] = std::make_shared<Same>(name);
  return registry;
}

// Line `number`, counted from 1.
std::string line_of(const std::string& text, int number) {
  std::istringstream stream(text);
  std::string line;
  for (int i = 0; i < number; ++i) std::getline(stream, line);
  return line;
}

// A module of two inputs %x, %y of type tensor<2x3xf32> whose only node is `line`.
Program parse_line(const std::string& line) {
  return parse("func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) {\n" + line +
               "\nreturn\n}\n");
}

TEST(Text, EveryGoldenLine_PrintsAndParses) {
  std::set<OpKind> seen;
  for (const Golden& golden : goldens()) {
    seen.insert(kind_of(golden.op));
    Builder builder = golden_inputs();
    builder.output("y", builder.add(golden.op, golden.operands));
    const Program program = builder.finish();
    const std::string text = print(program);
    EXPECT_EQ(line_of(text, 3), "    %0 = " + golden.line);
    EXPECT_EQ(parse(text), program) << text;
  }
  seen.insert(OpKind::Custom);  // below: it needs a registry
  for (const OpInfo& op : all_ops()) EXPECT_EQ(seen.count(op.kind), 1u) << op.name;
}

TEST(Text, CustomCall_EscapesNameAndAttributes) {
  const CustomRegistry customs = registry_of({"plain", "with space \"\xC3"});
  Builder builder;
  const ValueId x = builder.input("x", {DType::f32, {2}});
  builder.add(Custom{customs.at("plain"), ""}, {x, x});
  builder.add(Custom{customs.at("plain"), std::string("k = \"v\\\"\n\0{", 11)}, {x});
  builder.add(Custom{customs.at("with space \"\xC3"), "a"}, {});
  const Program program = builder.finish();
  const std::string text = print(program);
  EXPECT_EQ(line_of(text, 3),
            "    %0 = stablehlo.custom_call @plain(%arg0, %arg0) : (tensor<2xf32>, "
            "tensor<2xf32>) -> tensor<2xf32>");
  EXPECT_EQ(line_of(text, 4),
            R"(    %1 = stablehlo.custom_call @plain(%arg0) {attributes = "k = \"v\\\"\0A\00{"} : )"
            "(tensor<2xf32>) -> tensor<2xf32>");
  EXPECT_EQ(line_of(text, 5),
            R"(    %2 = stablehlo.custom_call @"with space \"\C3"() {attributes = "a"} : () -> )"
            "tensor<f32>");
  EXPECT_EQ(parse(text, {.customs = customs}), program);
}

TEST(Text, WholeModule_PrintsAsPinned) {
  Builder builder("net");
  const ValueId x = builder.input("x", {DType::f32, {Dim::symbol("B"), 784}});
  const ValueId seed = builder.input("loss", {DType::f32, {}}, InputRole::seed);
  const ValueId capture = builder.input("c0", {DType::bf16, {3}}, InputRole::capture);
  const ValueId sum = builder.add(Reduce{Reduction::sum, {0, 1}}, {x});
  builder.output("loss", sum);
  builder.output("c0", seed, OutputRole::capture);
  builder.output("same.value-again$", sum);
  builder.output("c1", capture, OutputRole::capture);
  const Program program = builder.finish();
  EXPECT_EQ(print(program),
            R"(module @net attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<[B]x784xf32> {mulgrad.name = "x"}, %arg1: tensor<f32> {mulgrad.seed = "loss"}, %arg2: tensor<3xbf16> {mulgrad.capture = "c0"}) -> (tensor<f32> {mulgrad.name = "loss"}, tensor<f32> {mulgrad.capture = "c0"}, tensor<f32> {mulgrad.name = "same.value-again$"}, tensor<3xbf16> {mulgrad.capture = "c1"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<[B]x784xf32>) -> tensor<f32>
    return %0, %arg1, %0, %arg2 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xbf16>
  }
}
)");
  EXPECT_EQ(parse_back(program), program);
}

TEST(Text, EmptyProgram_RoundTrips) {
  EXPECT_EQ(print(Program()),
            "module @main attributes {mulgrad.form = \"native\"} {\n  func.func @main() {\n    "
            "return\n  }\n}\n");
  EXPECT_EQ(parse_back(Program()), Program());
}

TEST(Text, ProgramNameWithDash_IsQuoted) {
  const Program program = Builder("a-b.c$").finish();
  EXPECT_EQ(line_of(print(program), 1),
            "module @\"a-b.c$\" attributes {mulgrad.form = \"native\"} {");
  EXPECT_EQ(parse_back(program), program);
}

TEST(Text, EveryOpCase_RoundTrips) {
  for (const testing::OpCase& op_case : testing::op_cases()) {
    const Program program = testing::program_of(op_case);
    EXPECT_EQ(parse_back(program), program) << op_case.name;
    EXPECT_EQ(print(parse_back(program)), print(program)) << op_case.name;
  }
}

TEST(Text, SpecialValuesOfEveryDType_RoundTripAsLiteralFillAndConstant) {
  for (int d = 0; d <= static_cast<int>(DType::f64); ++d) {
    const auto dtype = static_cast<DType>(d);
    Builder builder;
    const ValueId x = builder.input("x", {dtype, {2, 3}});
    std::vector<Literal> values(testing::special_values(dtype).begin(),
                                testing::special_values(dtype).end());
    if (is_float(dtype)) {
      values.push_back({dtype, Literal::infinity(dtype).bits + 1});  // a signalling NaN
      values.push_back({dtype, Literal::infinity(dtype, true).bits + 3});
      values.push_back({dtype, 1});  // the smallest subnormal
    }
    ASSERT_GE(values.size(), 2u);
    Tensor all(dtype, {std::ssize(values)});
    const auto width = static_cast<std::size_t>(byte_size(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(all.bytes().data() + i * width, &values[i].bits, width);
      builder.add(Fill{values[i], {2}}, {});
      if (dtype != DType::i1) builder.add(Maximum{}, {x, values[i]});
    }
    builder.add(Constant{shared(all)}, {});
    const Program program = builder.finish();
    EXPECT_EQ(parse_back(program), program) << to_string(dtype);
  }
}

TEST(Text, IntegersAbove53Bits_AreExact) {
  Builder builder;
  const ValueId x = builder.input("x", {DType::i64, {}});
  const ValueId u = builder.input("u", {DType::u64, {}});
  builder.add(Add{}, {x, Literal::from_int(DType::i64, (std::int64_t{1} << 53) + 1)});
  builder.add(Add{}, {u, Literal{DType::u64, ~std::uint64_t{0}}});
  const Program program = builder.finish();
  EXPECT_EQ(line_of(print(program), 3),
            "    %0 = stablehlo.add %arg0, 9007199254740993 : tensor<i64>");
  EXPECT_EQ(line_of(print(program), 4),
            "    %1 = stablehlo.add %arg1, 18446744073709551615 : tensor<ui64>");
  EXPECT_EQ(parse_back(program), program);
}

TEST(Text, ConstantsAboveHundredElements_ArePrintedAsBytes) {
  const auto ramp = [](std::int64_t size) {
    std::vector<std::int16_t> values;
    for (std::int64_t i = 0; i < size; ++i) values.push_back(static_cast<std::int16_t>(i - 2));
    return Tensor::of<std::int16_t>({size}, values);
  };
  Builder builder;
  builder.add(Constant{shared(ramp(100))}, {});
  builder.add(Constant{shared(ramp(101))}, {});
  const Program program = builder.finish();
  const std::string text = print(program);
  EXPECT_TRUE(line_of(text, 3).starts_with("    %0 = stablehlo.constant dense<[-2, -1, 0, 1, "));
  EXPECT_TRUE(
      line_of(text, 4).starts_with("    %1 = stablehlo.constant dense<\"0xFEFFFFFF00000100"));
  EXPECT_EQ(parse_back(program), program);

  Tensor flags(DType::i1, {101});
  flags.data<bool>()[100] = true;
  Builder logical;
  logical.add(Constant{shared(flags)}, {});
  const Program bytes = logical.finish();
  EXPECT_TRUE(line_of(print(bytes), 3).ends_with("000001\"> : tensor<101xi1>"));
  EXPECT_EQ(parse_back(bytes), bytes);
}

TEST(Text, Symbols_PrintSortedAndParseInAnyOrder) {
  const Program program =
      parse("func.func @main(%x: tensor<[ 2 * C*B ]x[B]x0xf32>, %y: tensor<[B*B]xf32>) { return }");
  EXPECT_EQ(program.inputs()[0].type.shape[0], Dim(2) * Dim::symbol("B") * Dim::symbol("C"));
  EXPECT_EQ(line_of(print(program), 2),
            "  func.func @main(%arg0: tensor<[2*B*C]x[B]x0xf32> {mulgrad.name = \"arg0\"}, %arg1: "
            "tensor<[B*B]xf32> {mulgrad.name = \"arg1\"}) {");
  EXPECT_EQ(parse_back(program), program);
}

TEST(Text, OtherSpellings_ReadTheSame) {
  const std::pair<const char*, const char*> spellings[] = {
      {"%0 = stablehlo.add %x, 15 : tensor<2x3xf32>",
       "%a = stablehlo.add %x, 1.5E1 : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(\"f\":1:2)"},
      {"%0 = stablehlo.negate %x : tensor<2x3xf32>\n%1 = stablehlo.add %0, %x : tensor<2x3xf32>",
       "%1 = stablehlo.negate %x : tensor<2x3xf32>\n%00 = stablehlo.add %1, %x : tensor<2x3xf32>"},
      {"%0 = stablehlo.add %x, 15.0000001 : tensor<2x3xf32>",
       "%0 = stablehlo.add %x, 0x41700000 : tensor < 2x3xf32 >"},
      {"%0 = stablehlo.compare LT, %x, %y, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xi1>",
       "%0 = stablehlo.compare  LT, %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xi1> // no type"},
      {"%0 = chlo.erf %x : tensor<2x3xf32> -> tensor<2x3xf32>",
       "%0 = chlo.erf %x : "
       "tensor<2x3xf32>"},
      {"%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<2x3xf32>, "
       "tensor<2x3xf32>) -> tensor<2x2xf32>",
       "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1], precision = [DEFAULT, "
       "HIGHEST] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>"},
      {"%0 = mulgrad.mean %x across dimensions = [0, 1] : (tensor<2x3xf32>) -> tensor<f32>",
       "%0 = mulgrad.mean %x across dimensions = [-1, 0] {keepdims = false} : (tensor<2x3xf32>) "
       "-> tensor<f32>"},
      {"%0 = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>",
       "%0 = stablehlo.constant dense<\"0x0000803F00000040\"> : tensor<1x2xf32>"},
      {"%0 = stablehlo.constant dense<5> : tensor<2xi32>",
       "%0 = stablehlo.constant dense<[5, 5]> : tensor<2xi32>"},
      {"%0 = stablehlo.constant dense<0.0> : tensor<2x0xf32>",
       "%0 = stablehlo.constant dense<> : tensor<2x0xf32>"},
      {"%0 = stablehlo.constant dense<7.0> : tensor<2x0xf32>",
       "%0 = stablehlo.constant dense<[[], []]> : tensor<2x0xf32>"},
      {"%0 = stablehlo.constant dense<0x7FC1> : tensor<2xbf16>",
       "%0 = stablehlo.constant dense<[0x7fc1, 0x7FC1]> : tensor<2xbf16>"},
      {"%0 = stablehlo.constant dense<3> : tensor<ui8>",
       "%0 = stablehlo.constant dense<3> : tensor<u8>"},
  };
  for (const auto& [one, other] : spellings) EXPECT_EQ(parse_line(one), parse_line(other)) << other;
}

TEST(Text, ClampWithScalarBounds_MayNameOneType) {
  const auto clamp = [](const std::string& type) {
    return parse(
        "func.func @main(%s: tensor<f32>, %x: tensor<4xf32>) {\n"
        "%0 = stablehlo.clamp %s, %x, %s : " +
        type + " return }");
  };
  EXPECT_EQ(clamp("tensor<4xf32>"),
            clamp("(tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>"));
}

TEST(Text, ForeignAttributesLocationsAndComments_AreDropped) {
  const Program program = parse(R"(#loc1 = loc("a.py":115:15 to :57)
// A module as other tools write it.
module @jit_f attributes {mhlo.num_partitions = 8 : i32, unit, s = "}{,\"", "q" = [1, {a = 2}]} {
  func.func public @main(%arg0: tensor<2xf32> {jax.arg_info = "p['w']", mulgrad.name = "w", tf.aliasing_output = 0 : i32} loc("w"(#loc1)), %b: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<2xf32> {jax.result_info = "result[1][0]['b1']"}) attributes {x = affine_map<(d0) -> (d0)>} {
    %0 = stablehlo.add %arg0, %b : tensor<2xf32> loc(callsite("g" at #loc1))
    return %0 : tensor<2xf32> loc(#loc1)
  } loc(unknown)
} loc(#loc1)
#loc2 = loc("b"(#loc1))
)");
  EXPECT_EQ(program.name(), "jit_f");
  EXPECT_EQ(program.inputs()[0].name, "w");
  EXPECT_EQ(program.inputs()[1].name, "arg1");
  EXPECT_EQ(program.outputs()[0].name, "out0");
  ASSERT_EQ(program.nodes().size(), 1u);
  EXPECT_EQ(parse_back(program), program);
}

TEST(Text, NothingIsFolded_WhateverTheNames) {
  const Program program = parse(R"(func.func @main() -> tensor<f32> {
    %cst = stablehlo.constant dense<1.0> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.0> : tensor<f32>
    %z.9-$ = stablehlo.add %cst, %cst_0 : tensor<f32>
    func.return %z.9-$ : tensor<f32>
  })");
  EXPECT_EQ(program.nodes().size(), 3u);
  EXPECT_EQ(program.name(), "main");
}

TEST(Text, MillionNodes_PrintAndParse) {
  constexpr int kNodes = 1'000'000;
  Builder builder;
  const Literal one = Literal::one(DType::f32);
  ValueId last = builder.input("x", {DType::f32, {2}});
  for (int i = 0; i < kNodes; ++i) last = builder.add(Add{}, {last, one});
  builder.output("y", last);
  const Program program = builder.finish();
  EXPECT_TRUE(parse_back(program) == program);
}

// A module that shows every op, for the two tests below.
Program every_op() {
  Builder builder = golden_inputs();
  ValueId last = arg(0);
  for (const Golden& golden : goldens()) last = builder.add(golden.op, golden.operands);
  for (const testing::OpCase& op_case : testing::op_cases()) {
    if (const auto* op = std::get_if<Custom>(&op_case.op); op != nullptr) {
      std::vector<Operand> operands;
      for (const auto& operand : op_case.operands) {
        operands.emplace_back(builder.input("extra" + std::to_string(builder.inputs().size()),
                                            std::get<testing::CaseOperand>(operand).type));
      }
      last = builder.add(*op, operands);
      break;
    }
  }
  EXPECT_TRUE(std::holds_alternative<Custom>(builder.nodes().back().op));
  builder.input("loss", {DType::f32, {}}, InputRole::seed);
  builder.output("y", last);
  builder.output("c0", arg(0), OutputRole::capture);
  return builder.finish();
}

// Parses or throws a located Error; what parses round-trips.
void expect_handled(std::string_view text) {
  try {
    const Program program = parse(text, with_customs());
    verify(program);
    EXPECT_TRUE(parse_back(program) == program) << text;
  } catch (const Error& error) {
    EXPECT_TRUE(error.location().starts_with("t.mlir:")) << error.what() << "\n" << text;
  }
}

TEST(Text, CutAtEveryByte_IsAnError) {
  const std::string text = print(every_op());
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    const std::string_view cut = std::string_view(text).substr(0, length);
    EXPECT_THROW(parse(cut, with_customs()), Error) << cut;
    expect_handled(cut);
  }
}

TEST(Text, MutatedTexts_ParseOrThrow) {
  std::vector<std::string> texts = {print(every_op())};
  // Short modules, so that a change hits an op more often than its surroundings.
  for (const Golden& golden : goldens()) {
    texts.push_back(
        "func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>, %arg2: "
        "tensor<2x3xi1>, %arg3: tensor<f32>) {\n%0 = " +
        golden.line + "\nreturn %0 : tensor<2x3xf32> }");
  }
  const std::string alphabet =
      "0123456789-+.eExX[](){}<>,:%@#\"\\ \n\tabfismBtrue\x80" + std::string(1, '\0');
  std::mt19937 random(20240229);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (int i = 0; i < 20'000; ++i) {
    std::string text = texts[i % 8 == 0 ? 0 : below(texts.size())];
    const std::size_t changes = 1 + below(4);
    for (std::size_t c = 0; c < changes && !text.empty(); ++c) {
      const std::size_t at = below(text.size());
      const std::size_t length = 1 + below(12);
      switch (below(6)) {
        case 0:
          text[at] = alphabet[below(alphabet.size())];
          break;
        case 1:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 2:
          text.erase(at, length);
          break;
        case 3:
          text.insert(below(text.size()), text.substr(at, length));
          break;
        case 4:  // a token of another text
          text.insert(at, texts[below(texts.size())].substr(below(80), length));
          break;
        default:
          if (text[at] >= '0' && text[at] <= '9') {
            text.insert(at, std::string(below(30), static_cast<char>('0' + below(10))));
          } else {
            text[at] = static_cast<char>(random() & 255);
          }
      }
    }
    expect_handled(text);
  }
}

TEST(Text, DeepNesting_IsReadWithoutRecursion) {
  constexpr std::size_t kDepth = 1'000'000;
  expect_handled("module attributes {a = " + std::string(kDepth, '[') + std::string(kDepth, ']') +
                 "} { func.func @main() { return } }");
  expect_handled("module attributes {a = " + std::string(kDepth, '<'));
  expect_handled("func.func @main() { %0 = stablehlo.constant dense<" + std::string(kDepth, '[') +
                 "1" + std::string(kDepth, ']') + "> : tensor<1xf32> return }");
  expect_handled("func.func @main() { return } loc" + std::string(kDepth, '('));
}

TEST(TextPlaces, Nodes_StandWhereTheirOpsAreWritten) {
  const std::string text = R"(module attributes {mulgrad.form = "native"} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // a comment
    %a = stablehlo.tanh %x : tensor<2xf32>
    %c = stablehlo.constant dense<1.0> : tensor<2xf32> %i = stablehlo.iota dim = 0 : tensor<2xf32>
    %s = stablehlo.add %a,
                       %c : tensor<2xf32>
    return %s : tensor<2xf32>
  }
}
)";
  const PlacedProgram placed = parse_with_places(text);
  EXPECT_EQ(placed.program, parse(text));
  std::vector<std::string> places;
  for (const std::size_t offset : placed.offsets) places.push_back(place_in(text, offset));
  EXPECT_EQ(places, (std::vector<std::string>{"4:10", "5:10", "5:61", "6:10"}));
}

}  // namespace
}  // namespace mulgrad
