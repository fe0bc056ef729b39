#include "lowering/target.h"

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "core/expr.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using ::testing::HasSubstr;

Type t(DType dtype, Shape shape) { return {dtype, std::move(shape)}; }

// A claim about one node: what is built on top of the inputs, who takes it, and why not.
struct TargetCase {
  std::string name;
  std::function<Var(Builder&)> build;
  std::string matmul_refusal;  // empty: takes it
  std::string move_refusal;
};

Var in(Builder& b, DType dtype, Shape shape) {
  return {b, b.input("x" + std::to_string(b.inputs().size()), t(dtype, std::move(shape)))};
}

std::vector<TargetCase> cases() {
  const auto f = DType::f32;
  const std::string absent = "does not have this op";
  const auto lit = [](double v) { return Literal::from_double(DType::f32, v); };
  return {
      {"fill",
       [=](Builder& b) {
         return fill(b, lit(1), {2, 3});
       },
       "", ""},
      {"fill of i32", [=](Builder& b) { return fill(b, Literal::one(DType::i32), {2}); },
       "result of dtype i32", "result of dtype i32"},
      {"constant",
       [=](Builder& b) {
         return constant(b, Tensor::of<float>({2}, {1, 2}));
       },
       "", ""},
      {"iota", [=](Builder& b) { return iota(b, f, {3}, 0); }, absent, absent},
      {"product",
       [=](Builder& b) {
         return matmul(in(b, f, {2, 3}), in(b, f, {3, 4}));
       },
       "", ""},
      {"product in f64",
       [=](Builder& b) {
         return matmul(in(b, DType::f64, {2, 3}), in(b, DType::f64, {3, 4}));
       },
       "", ""},
      {"product in bf16",
       [=](Builder& b) {
         return matmul(in(b, DType::bf16, {2, 3}), in(b, DType::bf16, {3, 4}));
       },
       "dtype bf16", "dtype bf16"},
      {"product in i32",
       [=](Builder& b) {
         return matmul(in(b, DType::i32, {2, 3}), in(b, DType::i32, {3, 4}));
       },
       "dtype i32", "dtype i32"},
      {"product of f32 into f64",
       [=](Builder& b) {
         return dot_general(in(b, f, {2, 3}), in(b, f, {3, 4}), {{}, {}, {1}, {0}, DType::f64});
       },
       "expected equal dtypes", "expected equal dtypes"},
      {"product over other axes",
       [=](Builder& b) {
         return dot_general(in(b, f, {3, 2}), in(b, f, {3, 4}), {{}, {}, {0}, {0}, f});
       },
       "found contracting dims [0] x [0]", "found contracting dims [0] x [0]"},
      {"product of rank 1",
       [=](Builder& b) {
         return dot_general(in(b, f, {3}), in(b, f, {3}), {{}, {}, {0}, {0}, f});
       },
       "ranks 1 and 1", "ranks 1 and 1"},
      {"outer product",
       [=](Builder& b) {
         return dot_general(in(b, f, {3, 1}), in(b, f, {1, 2}), {{}, {}, {}, {}, f});
       },
       "found contracting dims [] x []", "found contracting dims [] x []"},
      {"batched product",
       [=](Builder& b) {
         return dot_general(in(b, f, {5, 2, 3}), in(b, f, {5, 3, 4}), {{0}, {0}, {2}, {1}, f});
       },
       "found batching dims [0] x [0]", "found batching dims [0] x [0]"},
      {"equal shapes",
       [=](Builder& b) {
         return in(b, f, {2, 3}) + in(b, f, {2, 3});
       },
       "", ""},
      {"rank 0",
       [=](Builder& b) {
         return in(b, f, {2, 3}) + in(b, f, {});
       },
       "", ""},
      {"literal",
       [=](Builder& b) {
         return in(b, f, {2, 3}) / 2.0;
       },
       "", ""},
      {"size 1 against 2",
       [=](Builder& b) {
         return in(b, f, {1, 3}) + in(b, f, {2, 3});
       },
       "found an operand of shape [1, 3]", "found an operand of shape [1, 3]"},
      {"size 1 against 1 of rank 0", [=](Builder& b) { return in(b, f, {1}) + in(b, f, {}); }, "",
       ""},
      {"integers", [=](Builder& b) { return in(b, DType::i32, {2}) + in(b, DType::i32, {2}); },
       "dtype i32", "dtype i32"},
      {"16-bit floats", [=](Builder& b) { return exp(in(b, DType::f16, {2})); }, "dtype f16",
       "dtype f16"},
      {"compare", [=](Builder& b) { return compare(Comparison::GT, in(b, f, {2}), 0); }, "", ""},
      {"compare of integers",
       [=](Builder& b) { return compare(Comparison::GT, in(b, DType::i64, {2}), 0); }, "dtype i64",
       "dtype i64"},
      {"logic",
       [=](Builder& b) {
         const Var p = is_finite(in(b, f, {2}));
         return logical_and(p, logical_not(p));
       },
       "", ""},
      {"logic of integers", [=](Builder& b) { return logical_not(in(b, DType::i8, {2})); },
       "dtype i8", "dtype i8"},
      {"select",
       [=](Builder& b) {
         const Var x = in(b, f, {2});
         return select(compare(Comparison::GT, x, 0), x, 0);
       },
       "", ""},
      {"select by an input",
       [=](Builder& b) { return select(in(b, DType::i1, {2}), in(b, f, {2}), 0); },
       "input or output of the program of dtype i1", "input or output of the program of dtype i1"},
      {"select of i1",
       [=](Builder& b) {
         const Var p = is_finite(in(b, f, {2}));
         return select(p, p, p);
       },
       "operand of dtype i1", "operand of dtype i1"},
      {"clamp", [=](Builder& b) { return clamp(0, in(b, f, {2}), 1); }, "", ""},
      {"convert of an integer input",
       [=](Builder& b) { return convert(in(b, DType::u8, {2}), DType::f64); }, "", ""},
      {"convert of an integer node",
       [=](Builder& b) { return convert(iota(b, DType::i32, {2}, 0), f); }, "dtype i32",
       "dtype i32"},
      {"convert into an integer", [=](Builder& b) { return convert(in(b, f, {2}), DType::i32); },
       "result of dtype i32", "result of dtype i32"},
      {"convert into i1", [=](Builder& b) { return convert(in(b, f, {2}), DType::i1); },
       "result of dtype i1", "result of dtype i1"},
      {"convert of i1", [=](Builder& b) { return convert(is_finite(in(b, f, {2})), f); }, "", ""},
      {"reshape",
       [=](Builder& b) {
         return reshape(in(b, f, {2, 3}), {6});
       },
       "", ""},
      {"reshape of i1",
       [=](Builder& b) {
         return reshape(is_finite(in(b, f, {2})), {2, 1});
       },
       "operand of dtype i1", "operand of dtype i1"},
      {"transpose of any rank",
       [=](Builder& b) {
         return transpose(in(b, f, {2, 3, 4}));
       },
       "", ""},
      {"slice", [=](Builder& b) { return slice(in(b, f, {4}), {1}, {3}); }, absent, ""},
      {"concatenate",
       [=](Builder& b) {
         const Var x = in(b, f, {4});
         return concatenate(std::array{x, x}, 0);
       },
       absent, ""},
      {"pad", [=](Builder& b) { return pad(in(b, f, {4}), in(b, f, {}), {1}, {1}); }, absent, ""},
      {"broadcast_in_dim",
       [=](Builder& b) {
         return broadcast_in_dim(in(b, f, {4}), {3, 4}, {1});
       },
       absent, absent},
      {"reduce", [=](Builder& b) { return sum(in(b, f, {4})); }, absent, absent},
      {"mean", [=](Builder& b) { return mean(in(b, f, {4})); }, absent, absent},
      {"stop_gradient", [=](Builder& b) { return stop_gradient(in(b, f, {4})); }, absent, absent},
  };
}

TEST(Target, Refusal_IsWhatTheTableSays) {
  for (const TargetCase& test : cases()) {
    SCOPED_TRACE(test.name);
    Builder builder;
    const Var value = test.build(builder);
    // An i1 may not leave the program, so something reads it there.
    const bool is_logical = value.dtype() == DType::i1;
    builder.output("out", is_logical ? convert(value, DType::f32).id() : value.id());
    const Program program = builder.finish();
    const std::int64_t node = value.id().index();
    const auto check = [&](const Target& target, const std::string& expected) {
      SCOPED_TRACE(target.name());
      const auto found = target.refusal(program, node);
      EXPECT_EQ(found.has_value(), !expected.empty()) << found.value_or("takes it");
      EXPECT_THAT(found.value_or(""), HasSubstr(expected));
    };
    check(Target::matmul_only(), test.matmul_refusal);
    check(Target::matmul_move(), test.move_refusal);
    // It has no more than matmul_only but for what BatchedProducts lists.
    if (test.name != "batched product") check(Target::matmul_batched(), test.matmul_refusal);
    check(Target::cpu(), "");
  }
}

TEST(Target, BatchedProducts_AreTakenWithLeadingBatchesAlone) {
  struct Case {
    Shape lhs;
    Shape rhs;
    DotGeneral op;
    std::string refusal;
  };
  const std::vector<Case> cases{
      {{2, 3}, {3, 4}, {{}, {}, {1}, {0}}, ""},
      {{5, 2, 3}, {5, 3, 4}, {{0}, {0}, {2}, {1}}, ""},
      {{0, 2, 3}, {0, 3, 4}, {{0}, {0}, {2}, {1}}, ""},
      {{6, 5, 2, 3}, {6, 5, 3, 4}, {{0, 1}, {0, 1}, {3}, {2}}, ""},
      {{6, 5, 2, 3},
       {6, 5, 3, 4},
       {{1, 0}, {1, 0}, {3}, {2}},
       "found batching dims [1, 0] x [1, 0], expected [0, 1] x [0, 1]"},
      {{5, 2, 3},
       {3, 5, 4},
       {{0}, {1}, {2}, {0}},
       "found batching dims [0] x [1], expected [0] x [0]"},
      {{5, 3},
       {5, 3, 4},
       {{0}, {0}, {1}, {1}},
       "found a product of ranks 2 and 3, expected 3 and 3"},
      {{5, 2, 3},
       {5, 4, 3},
       {{0}, {0}, {2}, {2}},
       "found contracting dims [2] x [2], expected [2] x [1]"},
      {{3, 2}, {3, 4}, {{}, {}, {0}, {0}}, "found contracting dims [0] x [0], expected [1] x [0]"},
  };
  for (const Case& test : cases) {
    Builder b;
    DotGeneral op = test.op;
    op.dtype = DType::f32;
    const Var y = dot_general(in(b, DType::f32, test.lhs), in(b, DType::f32, test.rhs), op);
    b.output("y", y.id());
    EXPECT_EQ(Target::matmul_batched().refusal(b.finish(), 0).value_or(""), test.refusal);
  }
}

TEST(Target, I1Output_IsRefused) {
  Builder b;
  b.output("out", is_finite(in(b, DType::f32, {2})).id());
  const Program program = b.finish();
  EXPECT_THAT(Target::matmul_only().refusal(program, 0).value_or(""), HasSubstr("dtype i1"));
  EXPECT_EQ(Target::cpu().refusal(program, 0), std::nullopt);
}

TEST(Target, OfOps_TakesExactlyThose) {
  const std::array kinds{OpKind::Add, OpKind::DotGeneral};
  const Target target = Target::of_ops("mine", kinds);
  for (const OpInfo& op : all_ops()) {
    EXPECT_EQ(target.has(op.kind), op.kind == OpKind::Add || op.kind == OpKind::DotGeneral);
  }
  Builder b;
  const Var x = in(b, DType::bf16, {1, 3});
  b.output("a", (x + in(b, DType::bf16, {2, 3})).id());
  b.output("b", (-x).id());
  const Program program = b.finish();
  EXPECT_EQ(target.refusal(program, 0), std::nullopt);
  EXPECT_EQ(target.refusal(program, 1).value_or(""), "the target mine does not have this op");
}

TEST(TargetJson, BuiltInTargets_ReadBackEqual) {
  std::vector<Target> targets = built_in_targets();
  const std::array kinds{OpKind::Add, OpKind::Fill, OpKind::Slice};
  targets.push_back(Target::of_ops("a \"quoted\" name", kinds));
  for (const Target& target : targets) {
    const std::string text = target.to_json();
    EXPECT_EQ(Target::from_json(text), target) << text;
    EXPECT_EQ(Target::from_json(text).to_json(), text);
  }
  for (std::size_t i = 1; i < targets.size(); ++i) EXPECT_FALSE(targets[i] == targets[i - 1]);
}

TEST(TargetJson, Base_IsRestrictedAndExtended) {
  const Target target = Target::from_json(R"({
    "name": "npu", "base": "matmul_only", "interface": ["f32", "u8", "bf16"],
    "dtypes": ["f32", "i1", "u8"], "without": ["exponential", "sqrt"],
    "ops": {"dot_general": {"product": "batched"}, "add": {"operands": "any"}, "slice": {},
            "exponential": {"dtypes": ["f32", "bf16"]}, "floor": {"dtypes": ["f64"]}}})");
  const auto lacks = [&](const std::function<Var(Builder&)>& build) {
    Builder b;
    const Var value = build(b);
    b.output("y", value.id());
    return target.refusal(b.finish(), value.id().index()).value_or("");
  };
  const auto f = DType::f32;
  EXPECT_EQ(target.name(), "npu");
  EXPECT_EQ(lacks([&](Builder& b) { return exp(in(b, f, {2})); }), "");
  EXPECT_EQ(lacks([&](Builder& b) { return in(b, f, {1, 3}) + in(b, f, {2, 3}); }), "");
  EXPECT_EQ(lacks([&](Builder& b) { return slice(in(b, f, {4}), {1}, {3}); }), "");
  EXPECT_EQ(lacks([&](Builder& b) { return convert(in(b, DType::u8, {4}), f); }), "");
  EXPECT_EQ(lacks([&](Builder& b) {
              return dot_general(in(b, f, {5, 2, 3}), in(b, f, {5, 3, 4}), {{0}, {0}, {2}, {1}, f});
            }),
            "");
  EXPECT_EQ(lacks([&](Builder& b) { return sqrt(in(b, f, {2})); }),
            "the target npu does not have this op");
  // Nothing is left of its one dtype.
  EXPECT_EQ(lacks([&](Builder& b) { return floor(in(b, f, {2})); }),
            "the target npu does not have this op");
  EXPECT_THAT(lacks([&](Builder& b) {
                return in(b, f, {1, 3}) * in(b, f, {2, 3});
              }),
              HasSubstr("found an operand of shape [1, 3]"));
  EXPECT_THAT(lacks([&](Builder& b) { return convert(in(b, f, {2}), DType::f64); }),
              HasSubstr("result of dtype f64, expected one of f32"));
  EXPECT_EQ(target.interface_refusal(DType::bf16).value_or(""),
            "found an input or output of the program of dtype bf16, expected one of u8, f32");
}

TEST(TargetJson, Faults_AreCategorisedAndPlaced) {
  struct Case {
    std::string text;
    Category category;
    std::string place;
    std::string message;
  };
  const auto syntax = Category::parse_error;
  const auto target = Category::invalid_target;
  const std::vector<Case> cases{
      {"", syntax, "1:1", "malformed JSON: while parsing value - unexpected end of input"},
      {"{\"name\": \"a\"", syntax, "1:13", "unexpected end of input; expected '}'"},
      {"{\"name\": \"a\",}", syntax, "1:14", "unexpected '}'; expected string literal"},
      {"{\"name\": \"a\"}\n x", syntax, "2:2", "malformed JSON"},
      {"{\"name\": \"a\"} {}", syntax, "1:15", "unexpected '{'; expected end of input"},
      {"{\"name\": \"\xff\"}", syntax, "1:11", "ill-formed UTF-8"},
      {"{\"name\": 1e999}", syntax, "1:14", "malformed JSON: number overflow parsing '1e999'"},
      {"[]", syntax, "1:1", "found a list for the description of a target, expected an object"},
      {"12", syntax, "1:1", "found a number"},
      {"{}", target, "1:1", "found no \"name\", expected the name of the target"},
      {"{\"name\": null}", syntax, "1:10", "found null for \"name\", expected a string"},
      {"{\"name\": \"\"}", target, "1:10", "found an empty name"},
      {"{\"name\": \"a\",\n \"name\": \"b\"}", syntax, "2:2", "found the key \"name\" twice"},
      {R"({"name": "a", "op": {}})", target, "1:15",
       "found the key \"op\" in the target, expected one of name, base, interface, dtypes, "
       "without, ops"},
      {R"({"name": "a", "base": "abacus"})", target, "1:23",
       "found the base \"abacus\", expected one of matmul_only, matmul_move, matmul_batched, cpu"},
      {R"({"name": "a", "interface": "f32"})", syntax, "1:28",
       "found a string for \"interface\", expected a list"},
      {R"({"name": "a", "interface": ["f32", "f31"]})", target, "1:36",
       "found the dtype \"f31\", expected one of i1, i8"},
      {R"({"name": "a", "dtypes": [32]})", syntax, "1:26",
       "found a number for a dtype, expected a string"},
      {R"({"name": "a", "without": ["add"]})", target, "1:27",
       "found \"add\" in \"without\", expected an op that the base has"},
      {R"({"name": "a", "ops": ["add"]})", syntax, "1:22",
       "found a list for \"ops\", expected an object"},
      {R"({"name": "a", "ops": {"add": {}, "sub": {}}})", target, "1:34", "found the op \"sub\""},
      {R"({"name": "a", "ops": {"custom_call": {}}})", target, "1:23", "found the op"},
      {R"({"name": "a", "ops": {"add": 1}})", syntax, "1:30",
       "found a number for the op \"add\", expected an object"},
      {R"({"name": "a", "ops": {"add": true}})", syntax, "1:30",
       "found true or false for the op \"add\", expected an object"},
      {R"({"name": "a", "ops": {"add": {"ranks": 2}}})", target, "1:31",
       "found the key \"ranks\" in the op \"add\", expected one of dtypes, results, from_inputs, "
       "operands, product"},
      {R"({"name": "a", "ops": {"add": {"operands": "some"}}})", target, "1:43",
       "found \"some\" for \"operands\", expected one of plain, any"},
      {R"({"name": "a", "ops": {"reshape": {"operands": "any"}}})", target, "1:47",
       "found \"operands\" of reshape, expected it with elementwise ops alone"},
      {R"({"name": "a", "ops": {"add": {"product": "any"}}})", target, "1:42",
       "found \"product\" of add, expected it with dot_general alone"},
      {R"({"name": "a", "ops": {"fill": {"dtypes": ["f32"]}}})", target, "1:42",
       "found \"dtypes\" of fill, which has no operands: expected \"results\""},
      {R"({"name": "a", "ops": {"add": {"dtypes": [["f32"]]}}})", syntax, "1:42",
       "found a list at depth 5, expected no more than 4"},
      {std::string(1000000, '['), syntax, "1:5", "at depth 5"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text.substr(0, 80));
    const Error error = testing::error_of([&] { Target::from_json(test.text, "npu.json"); });
    EXPECT_EQ(error.category(), test.category);
    EXPECT_EQ(error.location(), "npu.json:" + test.place);
    EXPECT_THAT(error.message(), HasSubstr(test.message));
  }
}

TEST(TargetJson, EveryPrefix_IsMalformed) {
  const std::string text = Target::matmul_batched().to_json();
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    const Error error = testing::error_of([&] { Target::from_json(text.substr(0, size)); });
    EXPECT_EQ(error.category(), Category::parse_error) << size;
  }
}

// A broadcast that hides in an elementwise op, on a device whose kernels do not take it.
TEST(OnlyTargetOps, HiddenBroadcast_IsNamed) {
  Builder b;
  const Var x = in(b, DType::f32, {2, 3});
  b.output("out", (x + in(b, DType::f32, {1, 3})).id());
  const Program program = b.finish();
  const auto found = only_target_ops(Target::matmul_only()).violation(program);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(*found, HasSubstr("%0 stablehlo.add: found an operand of shape [1, 3]"));
  EXPECT_EQ(only_target_ops(Target::cpu()).violation(program), std::nullopt);
}

TEST(OnlyTargetOps, AbsentOp_IsNamedUnlessNothingReadsIt) {
  Builder b;
  const Var x = in(b, DType::f32, {2});
  sum(x);
  b.output("out", (x + x).id());
  EXPECT_EQ(only_target_ops(Target::matmul_only()).violation(b.finish()), std::nullopt);
  Builder read;
  read.output("out", sum(in(read, DType::f32, {2})).id());
  EXPECT_THAT(only_target_ops(Target::matmul_only()).violation(read.finish()).value_or(""),
              HasSubstr("%0 stablehlo.reduce"));
}

TEST(OnlyTargetOps, I1InputAsOutput_IsNamed) {
  Builder b;
  b.output("out", in(b, DType::i1, {2}).id());
  EXPECT_THAT(only_target_ops(Target::matmul_only()).violation(b.finish()).value_or(""),
              HasSubstr("%arg0 \"x0\": found an input or output of the program of dtype i1"));
}

}  // namespace
}  // namespace mulgrad
