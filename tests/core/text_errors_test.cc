// Every fault of a text: its category, its exact place, and what the message must name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text.h"

namespace mulgrad {
namespace {

using ::testing::HasSubstr;

struct Fault {
  std::string text;  // a '~' marks the place of the error, and is no part of the text
  Category category;
  std::string message;
  std::string node = {};
};

// The marked place of `text` as "t.mlir:line:col"; removes the mark.
std::string take_mark(std::string& text) {
  const std::size_t mark = text.find('~');
  EXPECT_NE(mark, std::string::npos) << text;
  text.erase(mark, 1);
  int line = 1;
  int column = 1;
  for (const char c : text.substr(0, mark)) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  return "t.mlir:" + std::to_string(line) + ":" + std::to_string(column);
}

void expect_fault(Fault fault) {
  const std::string location = take_mark(fault.text);
  try {
    parse(fault.text, {.file = "t.mlir", .customs = {}});
    ADD_FAILURE() << "parses: " << fault.text;
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.category()), to_string(fault.category)) << error.what();
    EXPECT_EQ(error.location(), location) << error.what() << "\n" << fault.text;
    EXPECT_EQ(error.node(), fault.node) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(fault.message)) << fault.text;
  }
}

// A fault in one line of a function with a few inputs.
void expect_line_faults(const std::vector<Fault>& faults) {
  for (Fault fault : faults) {
    fault.text =
        "func.func @main(%x: tensor<2x3xf32>, %i: tensor<2x3xi32>, %p: tensor<2x3xi1>,\n"
        "    %s: tensor<f32>, %d: tensor<2x3xf64>, %b: tensor<[B]x3xf32>, %v: tensor<3xf32>) {\n"
        "  " +
        fault.text + "\n  return\n}\n";
    expect_fault(fault);
  }
}

TEST(TextErrors, Location_IsFileLineAndColumn) {
  try {
    parse(
        "module @m {\n  func.func @main(%x: tensor<2xf32>) {\n    %0 = stablehlo.add %x, %y : "
        "tensor<2xf32>\n",
        {.file = "dir/net.mlir", .customs = {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "dir/net.mlir:3:28: missing_dependency: found %y, expected a value defined above");
  }
}

TEST(TextErrors, Literals_AreNumbersInRange) {
  expect_line_faults({
      {"%0 = stablehlo.divide %x, ~\"15\" : tensor<2x3xf32>", Category::parse_error,
       "found '\"15\"', expected a value such as %0, or a number"},
      {"%0 = stablehlo.divide %x, ~true : tensor<2x3xf32>", Category::parse_error,
       "found 'true', expected a number in the range of f32"},
      {"%0 = stablehlo.divide %i, ~1.5 : tensor<2x3xi32>", Category::parse_error,
       "found '1.5', expected a decimal integer in the range of i32"},
      {"%0 = stablehlo.divide %i, ~0x10 : tensor<2x3xi32>", Category::parse_error, "'0x10'"},
      {"%0 = stablehlo.divide %i, ~2147483648 : tensor<2x3xi32>", Category::parse_error,
       "'2147483648'"},
      {"%0 = stablehlo.divide %x, ~1e39 : tensor<2x3xf32>", Category::parse_error, "'1e39'"},
      {"%0 = stablehlo.divide %x, ~0x7FC0 : tensor<2x3xf32>", Category::parse_error,
       "0x and 8 digits"},
      {"%0 = stablehlo.divide %x, ~1_0 : tensor<2x3xf32>", Category::parse_error, "'1_0'"},
      {"%0 = stablehlo.divide %x, ~nan : tensor<2x3xf32>", Category::parse_error, "'nan'"},
      {"%0 = stablehlo.and %p, ~true : tensor<2x3xi1>", Category::invalid_literal,
       "i1 literals do not exist"},
      {"%0 = stablehlo.select ~1, %x, %x : tensor<2x3xi1>, tensor<2x3xf32>",
       Category::invalid_literal, "i1 literals do not exist"},
      {"%0 = ~stablehlo.add 1.0, 2.0 : tensor<2x3xf32>", Category::invalid_literal,
       "Elementwise E1", "%0 stablehlo.add"},
      {"%0 = ~stablehlo.convert 1.0 : tensor<2x3xf32>", Category::invalid_literal, "Elementwise E1",
       "%0 stablehlo.convert"},
      {"%0 = stablehlo.transpose ~1.0, dims = [] : () -> tensor<f32>", Category::invalid_literal,
       "only elementwise ops take literals"},
  });
}

TEST(TextErrors, Annotations_MustAgreeWithInference) {
  expect_line_faults({
      {"%0 = stablehlo.negate %x : ~tensor<2x3xf64>", Category::dtype_mismatch,
       "found tensor<2x3xf64> for %arg0, expected tensor<2x3xf32>", "%0 stablehlo.negate"},
      {"%0 = stablehlo.negate %x : ~tensor<3x2xf32>", Category::shape_mismatch,
       "found tensor<3x2xf32> for %arg0, expected tensor<2x3xf32>", "%0 stablehlo.negate"},
      {"%0 = stablehlo.negate %x : (tensor<2x3xf32>) -> ~tensor<3x2xf32>", Category::shape_mismatch,
       "found tensor<3x2xf32> for the result", "%0 stablehlo.negate"},
      {"%0 = stablehlo.negate %x : (tensor<2x3xf32>) -> ~tensor<3x2xbf16>",
       Category::dtype_mismatch, "expected tensor<2x3xf32>", "%0 stablehlo.negate"},
      {"%0 = stablehlo.add %x, %s : ~tensor<2x3xf32>", Category::shape_mismatch,
       "for %arg3, expected tensor<f32>", "%0 stablehlo.add"},
      {"%0 = stablehlo.negate %b : ~tensor<[C]x3xf32>", Category::shape_mismatch, "[B]x3",
       "%0 stablehlo.negate"},
      {"%0 = stablehlo.broadcast_in_dim %s, dims = [] : (~tensor<f64>) -> tensor<2xf64>",
       Category::dtype_mismatch, "found tensor<f64> for %arg3, expected tensor<f32>",
       "%0 stablehlo.broadcast_in_dim"},
      {"%0 = stablehlo.select %p, %x, %x : ~tensor<2x3xf32>, tensor<2x3xf32>",
       Category::dtype_mismatch, "for %arg2", "%0 stablehlo.select"},
      {"%0 = stablehlo.select %p, %x, %x : tensor<2x3xi1>, ~tensor<3x2xf32>",
       Category::shape_mismatch, "for %arg0", "%0 stablehlo.select"},
      {"%0 = chlo.erf %x : tensor<2x3xf32> -> ~tensor<2x3xf64>", Category::dtype_mismatch,
       "for the result", "%0 chlo.erf"},
      {"%0 = stablehlo.reduce(%x) applies stablehlo.add across dimensions = [0] : "
       "(tensor<2x3xf32>) -> ~tensor<2xf32>",
       Category::shape_mismatch, "expected tensor<3xf32>", "%0 stablehlo.reduce"},
      {"%0 = mulgrad.mean %x across dimensions = [0, 1] : (tensor<2x3xf32>) -> ~tensor<1x1xf32>",
       Category::reduction_shape_mismatch, "expected tensor<f32>", "%0 mulgrad.mean"},
      {"%0 = mulgrad.mean %x across dimensions = [0, 1] : (tensor<2x3xf32>) -> ~tensor<f64>",
       Category::dtype_mismatch, "expected tensor<f32>", "%0 mulgrad.mean"},
      {"%0 = stablehlo.compare LT, %x, %x, ~SIGNED : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xi1>",
       Category::dtype_mismatch, "found 'SIGNED' for operands of dtype f32, expected FLOAT"},
      {"%0 = stablehlo.constant dense<[1, 2]> : ~tensor<3xi32>", Category::shape_mismatch,
       "elements listed as [2]"},
      {"%0 = stablehlo.constant dense<> : ~tensor<3xi32>", Category::shape_mismatch, "none"},
      {"%0 = stablehlo.add %x, %s : ~(tensor<2x3xf32>) -> tensor<2x3xf32>", Category::parse_error,
       "found 1 operand types, expected one for each of the 2 values"},
      {"%0 = stablehlo.add %x, 1.0 : ~(tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
       Category::parse_error, "expected one for each of the 1 values"},
  });
}

TEST(TextErrors, Types_AreComplete) {
  expect_line_faults({
      {"%0 = stablehlo.negate %x : ~tensor<2x3>", Category::missing_dtype_metadata,
       "without a dtype"},
      {"%0 = stablehlo.negate %x : ~tensor<>", Category::missing_dtype_metadata, "without a dtype"},
      {"%0 = stablehlo.negate %x : ~f32", Category::missing_shape_metadata, "found 'f32'"},
      {"%0 = stablehlo.negate %x : ~tensor", Category::missing_shape_metadata,
       "without sizes and dtype"},
      {"%0 = stablehlo.negate %x : ~tensor<*xf32>", Category::missing_shape_metadata, "'*'"},
      {"%0 = stablehlo.negate %x : ~tensor<?x3xf32>", Category::missing_shape_metadata, "'?'"},
      {"%0 = stablehlo.negate %x : tensor<2x3x~complex<f32>>", Category::parse_error,
       "the dtype 'complex'"},
      {"%0 = stablehlo.negate %x : tensor<2x3xf32~, #e>", Category::parse_error, "expected '>'"},
      {"%0 = stablehlo.negate %x : tensor<2 ~3xf32>", Category::parse_error, "expected 'x'"},
      {"%0 = stablehlo.negate %x : tensor<~-2xf32>", Category::parse_error, "found '-'"},
      {"%0 = stablehlo.negate %x : tensor<~9223372036854775808xf32>", Category::parse_error,
       "leaves 63 bits"},
      {"%0 = stablehlo.negate %x : tensor<[~0*B]xf32>", Category::parse_error, "coefficient > 0"},
      {"%0 = stablehlo.negate %x : tensor<[2~]xf32>", Category::parse_error, "'*' and a symbol"},
      {"%0 = stablehlo.negate %x : tensor<[B*~2]xf32>", Category::parse_error, "a symbol"},
      {"%0 = stablehlo.negate %x : tensor<[B~.C]xf32>", Category::parse_error, "'*' or ']'"},
      {"%0 = stablehlo.negate %x ~%x", Category::parse_error, "expected ':'"},
  });
}

TEST(TextErrors, Names_AreDefinedOnceAndBeforeUse) {
  expect_line_faults({
      {"%0 = stablehlo.negate ~%y : tensor<2x3xf32>", Category::missing_dependency, "found %y"},
      {"%0 = stablehlo.negate ~%0 : tensor<2x3xf32>", Category::missing_dependency, "found %0"},
      {"%0 = stablehlo.negate %x : tensor<2x3xf32>\n~%0 = stablehlo.negate %x : tensor<2x3xf32>",
       Category::ambiguous_producer, "second definition of %0"},
      {"%1 = stablehlo.negate %x : tensor<2x3xf32>\n%0 = stablehlo.negate %1 : tensor<2x3xf32>\n"
       "~%1 = stablehlo.negate %x : tensor<2x3xf32>",
       Category::ambiguous_producer, "second definition of %1"},
      {"~%x = stablehlo.negate %x : tensor<2x3xf32>", Category::ambiguous_producer, "%x"},
  });
  expect_fault({"func.func @main(%a: tensor<f32>, ~%a: tensor<f32>) { return }",
                Category::ambiguous_producer, "second definition of %a"});
}

TEST(TextErrors, BuilderFaults_ArePlacedAtTheOp) {
  expect_line_faults({
      {"%0 = ~stablehlo.add %x, %d : tensor<2x3xf32>", Category::dtype_mismatch, "f32 and f64",
       "%0 stablehlo.add"},
      {"%0 = ~stablehlo.add %x, %v : tensor<2x3xf32>", Category::broadcast_shape_mismatch,
       "rank 2 vs 1", "%0 stablehlo.add"},
      {"%0 = ~stablehlo.add %x, %b : tensor<2x3xf32>", Category::symbolic_shape_mismatch,
       "Elementwise E5", "%0 stablehlo.add"},
      {"%0 = ~stablehlo.add %x, %x, %x : tensor<2x3xf32>", Category::arity_mismatch,
       "found 3 operands, expected 2", "%0 stablehlo.add"},
      {"%0 = ~stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>",
       Category::invalid_permutation, "Transpose C1", "%0 stablehlo.transpose"},
      {"%0 = ~stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<7xf32>", Category::shape_mismatch,
       "Reshape C1", "%0 stablehlo.reshape"},
      {"%0 = ~stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<4611686018427387904x4xf32>",
       Category::invalid_argument, "63 bits", "%0 stablehlo.reshape"},
      {"%0 = ~mulgrad.mean %x across dimensions = [0, 0] : (tensor<2x3xf32>) -> tensor<3xf32>",
       Category::reduction_shape_mismatch, "Mean C1", "%0 mulgrad.mean"},
      {"%0 = ~mulgrad.mean %x across dimensions = [2] : (tensor<2x3xf32>) -> tensor<3xf32>",
       Category::reduction_shape_mismatch, "Mean C1", "%0 mulgrad.mean"},
      {"%0 = ~mulgrad.mean %i across dimensions = [0] : (tensor<2x3xi32>) -> tensor<3xi32>",
       Category::dtype_not_differentiable, "Mean C2", "%0 mulgrad.mean"},
      {"%0 = ~stablehlo.slice %b [0:1, 0:3] : (tensor<[B]x3xf32>) -> tensor<1x3xf32>",
       Category::unresolved_symbolic_shape, "[B]", "%0 stablehlo.slice"},
      {"%0 = ~stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<2x3xf32>, "
       "tensor<2x3xf32>) -> tensor<2x3xf32>",
       Category::matmul_shape_mismatch, "DotGeneral C4", "%0 stablehlo.dot_general"},
      {"%0 = ~stablehlo.iota dim = 1 : tensor<3xi32>", Category::invalid_attribute, "Iota C2",
       "%0 stablehlo.iota"},
  });
}

TEST(TextErrors, Ops_KeepTheirGrammar) {
  expect_line_faults({
      {"%0 = ~stablehlo.cholesky %x : tensor<2x3xf32>", Category::parse_error,
       "found the op 'stablehlo.cholesky'"},
      {"%0 = ~\"stablehlo.add\"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
       Category::parse_error, "an op in its pretty form"},
      {"%0~:2 = stablehlo.add %x, %x : tensor<2x3xf32>", Category::parse_error, "one result"},
      {"~stablehlo.add %x, %x : tensor<2x3xf32>", Category::parse_error, "a node"},
      {"%0 = stablehlo.add %x, %x ~{a = 1} : tensor<2x3xf32>", Category::parse_error,
       "expected ':'"},
      {"%0 = stablehlo.add %x, ~: tensor<2x3xf32>", Category::parse_error, "found ':'"},
      {"%0 = stablehlo.compare ~LTE, %x, %x : tensor<2x3xf32>", Category::parse_error,
       "EQ, NE, LT, LE, GT or GE"},
      {"%0 = stablehlo.compare LT, %x, %x, ~TOTALORDER : tensor<2x3xf32>", Category::parse_error,
       "found 'TOTALORDER', expected FLOAT"},
      {"%0 = stablehlo.reduce(%x ~init: %s) applies stablehlo.add across dimensions = [0] : "
       "(tensor<2x3xf32>) -> tensor<3xf32>",
       Category::parse_error, "found 'init', expected ')'"},
      {"%0 = stablehlo.reduce(%x) applies ~stablehlo.divide across dimensions = [0] : "
       "(tensor<2x3xf32>) -> tensor<3xf32>",
       Category::parse_error, "found 'stablehlo.divide'"},
      {"%0 = mulgrad.mean %x ~: (tensor<2x3xf32>) -> tensor<f32>", Category::parse_error,
       "expected 'across'"},
      {"%0 = mulgrad.mean %x~, %x across dimensions = [0] : (tensor<2x3xf32>) -> tensor<f32>",
       Category::parse_error, "expected 'across'"},
      {"%0 = mulgrad.mean %x across dimensions = [0] {keepdims = ~1} : (tensor<2x3xf32>) -> "
       "tensor<f32>",
       Category::parse_error, "true or false"},
      {"%0 = stablehlo.transpose %x, dims = [0, ~1.5] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
       Category::parse_error, "found '1.5', expected an integer"},
      {"%0 = stablehlo.transpose %x, dims = [0 ~1] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
       Category::parse_error, "',' or ']'"},
      {"%0 = stablehlo.transpose %x, dims = [0, 1] : ~tensor<2x3xf32>", Category::parse_error,
       "expected '('"},
      {"%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], ~algorithm = <a> : "
       "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>",
       Category::parse_error, "expected 'precision'"},
      {"%0 = stablehlo.custom_call ~@f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
       Category::parse_error, "found the custom op '@f'"},
  });
}

TEST(TextErrors, Constants_AreWellFormed) {
  const std::string c = "%0 = stablehlo.constant ";
  expect_line_faults({
      {c + "dense<[[1, 2], [3~]]> : tensor<2x2xi32>", Category::parse_error,
       "found a list of 1 entries beside one of 2"},
      {c + "dense<[1, ~[2]]> : tensor<2xi32>", Category::parse_error, "expected a number"},
      {c + "dense<[[1], ~2]> : tensor<2xi32>", Category::parse_error, "expected '['"},
      {c + "dense<[1 ~2]> : tensor<2xi32>", Category::parse_error, "',' or ']'"},
      {c + "dense<[1, ~2.5]> : tensor<2xi32>", Category::parse_error, "in the range of i32"},
      {c + "dense<~300> : tensor<2xi8>", Category::parse_error, "in the range of i8"},
      {c + "dense<~-1> : tensor<2xui8>", Category::parse_error, "in the range of u8"},
      {c + "dense<~1> : tensor<2xi1>", Category::parse_error, "true or false"},
      {c + "dense<~\"abc\"> : tensor<2xi8>", Category::parse_error, "\"0x...\""},
      {c + "dense<~\"0x0\"> : tensor<2xi8>", Category::parse_error, "for each of 2 bytes"},
      {c + "dense<~\"0x000102\"> : tensor<2xi8>", Category::parse_error, "found 6 hex digits"},
      {c + "dense<~\"0x00G1\"> : tensor<2xi8>", Category::parse_error, "hex digits alone"},
      {c + "dense<~\"0x0002\"> : tensor<2xi1>", Category::parse_error, "the byte 2"},
      {c + "~dense<[1, 2]> : tensor<[B]xi32>", Category::unresolved_symbolic_shape, "[B]"},
      {c + "dense<~\"0x01> : tensor<[B]xi32>", Category::parse_error, "unterminated string"},
      {c + "~dense_resource<a> : tensor<2xi32>", Category::parse_error, "expected 'dense'"},
  });
}

TEST(TextErrors, Marks_MustNotContradict) {
  const auto argument = [](const std::string& dict) {
    return "func.func @main(%x: tensor<f32> " + dict + ") { return }";
  };
  const auto result = [](const std::string& dict) {
    return "func.func @main(%x: tensor<f32>) -> (tensor<f32> " + dict +
           ") { return %x : tensor<f32> }";
  };
  const std::vector<Fault> faults = {
      {argument("{mulgrad.name = \"x\", ~mulgrad.seed = \"loss\"}"),
       Category::malformed_derivative_ir, "found mulgrad.seed beside mulgrad.name"},
      {argument("{mulgrad.capture = \"c0\", ~mulgrad.name = \"x\"}"),
       Category::malformed_derivative_ir, "found mulgrad.name beside mulgrad.capture"},
      {argument("{mulgrad.seed = ~\"\"}"), Category::malformed_derivative_ir, "links to"},
      {argument("{mulgrad.seed = \"y\"}, %z: tensor<f32> {mulgrad.seed = ~\"y\"}"),
       Category::malformed_derivative_ir, "second argument with mulgrad.seed = \"y\""},
      {argument("{mulgrad.capture = \"c\"}, %z: tensor<f32> {mulgrad.capture = ~\"c\"}"),
       Category::malformed_derivative_ir, "second argument with mulgrad.capture"},
      {result("{~mulgrad.seed = \"x\"}"), Category::malformed_derivative_ir,
       "a seed among the results"},
      {result("{mulgrad.name = \"x\", ~mulgrad.capture = \"c0\"}"),
       Category::malformed_derivative_ir, "beside"},
      {"func.func @main(%x: tensor<f32>) -> (tensor<f32> {mulgrad.capture = \"c\"}, tensor<f32> "
       "{mulgrad.capture = ~\"c\"}) { return %x, %x : tensor<f32>, tensor<f32> }",
       Category::malformed_derivative_ir, "second result with mulgrad.capture"},
      {argument("{mulgrad.seed = ~loss}"), Category::parse_error, "a string"},
      {argument("{~mulgrad.sead = \"loss\"}"), Category::parse_error, "'mulgrad.sead'"},
      {argument("{mulgrad.name = ~\"1x\"}"), Category::invalid_name, "\"1x\""},
      {argument("{mulgrad.name = \"x\"}, %z: tensor<f32> {mulgrad.name = ~\"x\"}"),
       Category::invalid_name, "used twice"},
      {argument("{mulgrad.name = \"arg1\"}, ~%z: tensor<f32>"), Category::invalid_name,
       "used twice"},
      {argument("{a = ~}"), Category::parse_error, "an attribute"},
      {argument("{a = [1, (2~], 3]}"), Category::parse_error, "expected ')'"},
  };
  for (const Fault& fault : faults) expect_fault(fault);
}

TEST(TextErrors, Structure_IsOneModuleWithMain) {
  const std::string main = "func.func @main() { return }";
  const std::vector<Fault> faults = {
      {"~", Category::parse_error, "found the end of the text, expected 'func.func'"},
      {"module {~", Category::parse_error, "expected 'func.func'"},
      {"module @m attributes {mulgrad.form = ~\"stablehlo\"} {" + main + "}", Category::parse_error,
       "expected \"native\""},
      {"module ~@\"<lambda>\" {" + main + "}", Category::invalid_name, "<lambda>"},
      {"func.func ~private @f() { return }", Category::parse_error, "not supported yet"},
      {"module { " + main + " ~func.func private @f() { return } }", Category::parse_error,
       "private functions are not supported yet"},
      {"func.func ~@other() { return }", Category::parse_error, "expected '@main'"},
      {main + " ~x", Category::parse_error, "the end of the text"},
      {"module {" + main + "~", Category::parse_error, "expected '}'"},
      {"func.func @main() -> tensor<f32> { ~return }", Category::parse_error,
       "found 0 returned values, expected the 1"},
      {"func.func @main(%x: tensor<f32>) { ~return %x : tensor<f32> }", Category::parse_error,
       "found 1 returned values, expected the 0"},
      {"func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : ~tensor<2xf32> }",
       Category::shape_mismatch, "expected tensor<f32>", "%arg0 \"arg0\""},
      {"func.func @main(%x: tensor<f32>) -> ~tensor<f64> { return %x : tensor<f32> }",
       Category::dtype_mismatch, "for result 0", "%arg0 \"arg0\""},
      {"func.func @main(%x: tensor<f32>) -> tensor<f32> { return ~%y : tensor<f32> }",
       Category::missing_dependency, "%y"},
      {"func.func @main() {\n  ~\x80\n}", Category::parse_error, "found the byte \\80"},
      {"#loc = ~affine_map<()>\n" + main, Category::parse_error, "expected loc(...)"},
      {"// nothing but a comment~", Category::parse_error, "the end of the text"},
  };
  for (const Fault& fault : faults) expect_fault(fault);
}

}  // namespace
}  // namespace mulgrad
