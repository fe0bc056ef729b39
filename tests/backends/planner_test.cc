#include "backends/cpu/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/layers.h"
#include "autodiff/losses.h"
#include "backends/cpu/forms.h"
#include "backends/cpu/session.h"
#include "core/interpreter.h"
#include "core/text.h"
#include "lowering/pipeline.h"
#include "tests/support/golden.h"
#include "tests/support/near.h"
#include "tests/support/random_program.h"

namespace mulgrad {
namespace {

using testing::Draw64;
using testing::matches_golden;
using testing::near;

const Dim kBatch = Dim::symbol("B");

Tensor numbers(const Type& type, std::uint64_t seed) {
  Draw64 draw(seed);
  std::vector<double> values;
  const std::int64_t count = type.shape.elements().size();
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(is_float(type.dtype) ? static_cast<double>(draw.below(2001) - 1000) / 1000
                                          : static_cast<double>(draw.below(3)));
  }
  return Tensor::from_doubles(type.dtype, type.shape.sizes(), values);
}

std::vector<Tensor> inputs_of(const Program& program, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Input& input : program.inputs()) inputs.push_back(numbers(input.type, ++seed * 977));
  return inputs;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Outputs of a program on the CPU and by the interpreter.
void expect_agreement(const Program& program, std::uint64_t seed) {
  const std::vector<Tensor> inputs = inputs_of(program, seed);
  const std::vector<Tensor> want = interpret(program, inputs);
  CpuProgram compiled(program, {.threads = 1});
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> got = compiled.run(inputs);
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(near(got[i], want[i], {1e-4, 1e-5, testing::ZeroSign::free}))
          << "output " << i << "\n"
          << print(program) << compiled.plan().print();
    }
  }
}

// Models ---------------------------------------------------------------------------------------

TrainingSpec classifier(std::vector<std::int64_t> sizes, std::shared_ptr<const Optimizer> optimizer,
                        DType dtype = DType::f32) {
  TrainingSpec spec;
  spec.inputs = {{"x", {dtype, {kBatch, sizes[0]}}}, {"y", {DType::i32, {kBatch}}}};
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::string number = std::to_string(i);
    spec.inputs.push_back({"w" + number, {dtype, {sizes[i], sizes[i + 1]}}});
    spec.inputs.push_back({"b" + number, {dtype, {1, sizes[i + 1]}}});
    spec.parameters.push_back("w" + number);
    spec.parameters.push_back("b" + number);
  }
  const std::size_t layers = sizes.size() - 1;
  spec.loss = [layers](Tape&, const NamedVars& in) {
    Var x = in["x"];
    for (std::size_t i = 0; i < layers; ++i) {
      if (i > 0) x = maximum(x, 0);
      x = matmul(x, in["w" + std::to_string(i)]) + in["b" + std::to_string(i)];
    }
    return softmax_cross_entropy(x, in["y"]);
  };
  return with_optimizer(std::move(spec), std::move(optimizer));
}

TrainingSession session_of(const TrainingSpec& spec, const Target& target, int threads = 1) {
  std::vector<Tensor> parameters;
  for (const std::string& name : spec.parameters) {
    for (const DeclaredInput& input : spec.inputs) {
      if (input.name == name) parameters.push_back(numbers(input.type, parameters.size() + 1));
    }
  }
  return {spec, target, Passes::for_target(target), std::move(parameters), {.threads = threads}};
}

std::shared_ptr<const Optimizer> sgd() {
  return std::make_shared<SGD>(SGD::Settings{.rate = 0.125});
}

// Forms ----------------------------------------------------------------------------------------

TEST(Forms, MatmulOnlyStep_BecomesTheDirectOne) {
  std::vector<std::string> texts;
  for (const Target& target : {Target::cpu(), Target::matmul_only()}) {
    TrainingSession session = session_of(classifier({6, 5, 3}, sgd()), target);
    texts.push_back(print(cpu::kernel_forms(step_program(session.prepared({{"B", 4}})))));
  }
  EXPECT_TRUE(matches_golden(texts[0], "plan/forms_direct.txt"));
  EXPECT_TRUE(matches_golden(texts[1], "plan/forms_matmul_only.txt"));
}

// One op, or a few, and what its form is to hold in place of them.
struct FormCase {
  std::string name;
  std::function<Var(Var x, Var y)> make;  // x and y are [4,3]
  std::vector<std::string> holds;
  std::vector<std::string> lacks;
};

TEST(Forms, Values_StayTheSame) {
  const auto ones = [](Var x, std::int64_t rows, std::int64_t columns) {
    return fill(x.builder(), Literal::one(x.dtype()), {rows, columns});
  };
  const auto shifted = [](Var x, std::int64_t by) {
    std::vector<float> values(9);
    for (std::int64_t j = 0; j < 3; ++j) values[static_cast<std::size_t>((j + by) % 3 * 3 + j)] = 1;
    return matmul(x, constant(x.builder(), Tensor::of<float>({3, 3}, values)));
  };
  const auto first = [](Var x) {
    return matmul(x, constant(x.builder(), Tensor::of<float>({3, 1}, {1, 0, 0})));
  };
  const FormCase cases[] = {
      {"transposed operand",
       [](Var x, Var y) { return matmul(transpose(x), y); },
       {"dot_general"},
       {"transpose"}},
      {"transposed result",
       [](Var x, Var y) { return transpose(matmul(x, transpose(y))); },
       {"dot_general"},
       {"transpose"}},
      {"a result that is read as it is too stays one product",
       [](Var x, Var y) {
         const Var product = matmul(x, transpose(y));
         return product + transpose(product);
       },
       {"transpose"},
       {}},
      {"ones on the right",
       [=](Var x, Var) { return matmul(x, ones(x, 3, 1)); },
       {"reduce"},
       {"dot_general"}},
      {"ones on the left",
       [=](Var x, Var) { return matmul(ones(x, 1, 4), x); },
       {"reduce"},
       {"dot_general"}},
      {"ones against a size of 1",
       [=](Var x, Var y) { return x + matmul(matmul(x, ones(x, 3, 1)), ones(x, 1, 3)) * y; },
       {"reduce"},
       {"dot_general", "broadcast"}},
      {"ones with several rows",
       [=](Var x, Var) { return matmul(ones(x, 2, 4), x); },
       {"reduce", "broadcast"},
       {"dot_general"}},
      {"factor of ones", [=](Var x, Var) { return x * ones(x, 4, 3); }, {}, {"multiply"}},
      {"guarded maximum",
       [=](Var x, Var) {
         const Var guarded = select(is_finite(x), x, Literal::lowest_finite(x.dtype()));
         const Var two = maximum(guarded, shifted(guarded, 1));
         return first(maximum(two, shifted(two, 2)));
       },
       {"reduce"},
       {"dot_general"}},
      {"a maximum of two columns of three is none of the row",
       [=](Var x, Var) {
         const Var guarded = select(is_finite(x), x, Literal::lowest_finite(x.dtype()));
         return first(maximum(guarded, shifted(guarded, 1)));
       },
       {"dot_general"},
       {"reduce"}},
      {"a shift of what may be infinite stays",
       [=](Var x, Var) {
         const Var two = maximum(x, shifted(x, 1));
         return first(maximum(two, shifted(two, 2)));
       },
       {"dot_general"},
       {"reduce"}},
      {"maximum in place of its operand",
       [](Var x, Var y) {
         const Var z = x + y;
         const Var h = maximum(z, 0);
         return select(compare(Comparison::GT, z, 0), h * y, 0.0);
       },
       {"compare GT, %1"},
       {}},
  };
  for (const FormCase& one : cases) {
    SCOPED_TRACE(one.name);
    Builder builder;
    const Var x(builder, builder.input("x", {DType::f32, {4, 3}}));
    const Var y(builder, builder.input("y", {DType::f32, {4, 3}}));
    builder.output("z", one.make(x, y).id());
    const Program program = builder.finish();
    const Program formed = cpu::kernel_forms(program);
    const std::string text = print(formed);
    for (const std::string& part : one.holds) EXPECT_THAT(text, ::testing::HasSubstr(part));
    for (const std::string& part : one.lacks) {
      EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("." + part)));
    }
    const std::vector<Tensor> inputs = inputs_of(program, 5);
    EXPECT_TRUE(near(interpret(formed, inputs)[0], interpret(program, inputs)[0],
                     {0, 1e-6, testing::ZeroSign::free}));
    EXPECT_EQ(cpu::kernel_forms(formed), formed);
  }
}

TEST(Forms, MatmulOnlyMaximum_IsOneReductionAndKeepsWhatIsNotFinite) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {5, 3}}));
  builder.output("y", reduce(Reduction::max, x, {1}).id());
  const Target target = Target::matmul_only();
  const Program program =
      run_passes(builder.finish(), Slot::forward, default_pipeline(target, Slot::forward)).program;
  EXPECT_GT(count(print(program), "dot_general"), 3u);
  const Program formed = cpu::kernel_forms(program);
  EXPECT_EQ(formed.nodes().size(), 1u) << print(formed);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor rows = Tensor::of<float>(
      {5, 3}, {1, 3, 2, nan, 1, inf, -inf, -inf, -inf, 0, inf, -inf, -5, -inf, -7});
  EXPECT_EQ(CpuProgram(program).run(std::vector{rows})[0].to_doubles()[0], 3);
  EXPECT_TRUE(near(CpuProgram(program).run(std::vector{rows})[0],
                   Tensor::of<float>({5}, {3, nan, -inf, inf, -5})));
}

// Plans ----------------------------------------------------------------------------------------

std::string plan_text(const TrainingSpec& spec, const Target& target, std::int64_t batch) {
  TrainingSession session = session_of(spec, target);
  return session.plan({{"B", batch}}).print();
}

TEST(PlanText, DirectAndMatmulOnlySteps_HoldTheSameProducts) {
  const TrainingSpec spec = classifier({784, 128, 10}, sgd());
  const std::string direct = plan_text(spec, Target::cpu(), 32);
  const std::string only = plan_text(spec, Target::matmul_only(), 32);
  EXPECT_TRUE(matches_golden(direct, "plan/classifier_direct.txt"));
  EXPECT_TRUE(matches_golden(only, "plan/classifier_matmul_only.txt"));
  EXPECT_EQ(count(direct, "flop"), count(only, "flop"));
}

TEST(PlanText, AdamW_IsALoopPerParameter) {
  const std::string text = plan_text(
      classifier({6, 5, 3}, std::make_shared<AdamW>(AdamW::Settings{})), Target::cpu(), 4);
  EXPECT_TRUE(matches_golden(text, "plan/classifier_adamw.txt"));
  EXPECT_EQ(count(text, "sqrt"), 4u);
}

TEST(PlanText, TransformerBlock_MovesNothing) {
  const Sequential block = transformer_block(8, 2, AttentionMask::causal);
  TrainingSpec spec;
  spec.inputs = {{"x", {DType::f32, {kBatch, 5, 8}}}, {"y", {DType::f32, {kBatch, 5, 8}}}};
  for (const Parameter& parameter : block.parameters()) {
    spec.inputs.push_back({parameter.name, parameter.type});
    spec.parameters.push_back(parameter.name);
  }
  spec.loss = [block, names = spec.parameters](Tape&, const NamedVars& in) {
    std::vector<Var> parameters;
    for (const std::string& name : names) parameters.push_back(in[name]);
    return mse(block.forward(in["x"], parameters), in["y"]);
  };
  const std::string text = plan_text(with_optimizer(std::move(spec), sgd()), Target::cpu(), 3);
  EXPECT_TRUE(matches_golden(text, "plan/transformer_block.txt"));
  EXPECT_EQ(count(text, "Transpose"), 0u);
  EXPECT_EQ(count(text, "arrange"), 0u);
  EXPECT_EQ(count(text, "+="), 6u);
}

// A parameter's update, and whether it is to become part of the product.
struct FoldCase {
  std::string name;
  std::function<Update(const UpdateArguments&)> update;
  bool folds;
};

TEST(UpdateFold, AppliesWhereTheGradientIsReadOnceAlone) {
  const FoldCase cases[] = {
      {"literal rate",
       [](const UpdateArguments& a) -> Update {
         return {a.parameter - 0.125 * a.gradient, {}};
       },
       true},
      {"gradient first",
       [](const UpdateArguments& a) -> Update {
         return {a.parameter - a.gradient * 0.125, {}};
       },
       true},
      {"added",
       [](const UpdateArguments& a) -> Update {
         return {(-0.125) * a.gradient + a.parameter, {}};
       },
       true},
      {"rank-0 rate",
       [](const UpdateArguments& a) -> Update {
         return {a.parameter - a.optimizer_inputs["rate"] * a.gradient, {}};
       },
       true},
      {"rank-0 rate and a number",
       [](const UpdateArguments& a) -> Update {
         return {a.parameter - a.optimizer_inputs["rate"] * (0.5 * a.gradient), {}};
       },
       true},
      {"not_applied_gradient_read_twice",
       [](const UpdateArguments& a) -> Update {
         return {a.parameter - 0.125 * a.gradient * abs(a.gradient), {}};
       },
       false},
      {"not_applied_parameter_decays",
       [](const UpdateArguments& a) -> Update {
         return {0.5 * a.parameter - 0.125 * a.gradient, {}};
       },
       false},
      {"not_applied_parameter_is_taken_away",
       [](const UpdateArguments& a) -> Update {
         return {0.125 * a.gradient - a.parameter, {}};
       },
       false},
      {"not_applied_divided",
       [](const UpdateArguments& a) -> Update {
         return {a.parameter / a.gradient, {}};
       },
       false},
  };
  for (const FoldCase& one : cases) {
    SCOPED_TRACE(one.name);
    TrainingSpec spec;
    spec.inputs = {
        {"x", {DType::f32, {kBatch, 3}}}, {"w", {DType::f32, {3, 5}}}, {"v", {DType::f32, {5, 2}}}};
    spec.parameters = {"w", "v"};
    spec.loss = [](Tape&, const NamedVars& in) {
      const Var out = matmul(tanh(matmul(in["x"], in["w"])), in["v"]);
      return mean(out * out);
    };
    spec.optimizer_inputs = {{"rate", {DType::f32, {}}}};
    spec.update = one.update;
    TrainingSession session = session_of(spec, Target::cpu());
    const std::string text = session.plan({{"B", 4}}).print();
    EXPECT_EQ(count(text, "+="), one.folds ? 2u : 0u) << text;
    EXPECT_EQ(count(text, "after a copy"), 0u) << text;

    std::vector<Tensor> inputs{numbers({DType::f32, {4, 3}}, 7), session.parameters()[0],
                               session.parameters()[1], Tensor::scalar(0.125F)};
    const std::vector<Tensor> want = interpret(step_program(session.prepared({{"B", 4}})), inputs);
    session.step(std::vector{inputs[0]}, std::vector{inputs[3]});
    EXPECT_TRUE(near(session.parameters()[0], want[1], {0, 1e-5}));
    EXPECT_TRUE(near(session.parameters()[1], want[2], {0, 1e-5}));
  }
}

// What follows a product [4,5] of x [4,3] and w [3,5], and what of it the product is to do itself.
struct EpilogueCase {
  std::string name;
  std::function<Var(Var product, const NamedVars& in)> make;
  std::string absorbed;  // as the plan prints it
};

TEST(Epilogue, AppliesToRowsZeroAndGatesAlone) {
  const auto open = [](const NamedVars& in) { return compare(Comparison::GT, in["h"], 0); };
  const EpilogueCase cases[] = {
      {"bias", [](Var p, const NamedVars& in) { return p + in["row"]; }, "(add)"},
      {"bias first", [](Var p, const NamedVars& in) { return in["row"] + p; }, "(add)"},
      {"bias of rank 1",
       [](Var p, const NamedVars& in) {
         return p + broadcast_in_dim(in["vector"], {4, 5}, {1});
       },
       "(add)"},
      {"bias behind a reshape",
       [](Var p, const NamedVars& in) {
         return reshape(p, {2, 2, 5}) + broadcast_in_dim(in["vector"], {2, 2, 5}, {2});
       },
       "(add)"},
      {"relu", [](Var p, const NamedVars&) { return maximum(p, 0); }, "(maximum)"},
      {"bias and relu", [](Var p, const NamedVars& in) { return maximum(p + in["row"], 0); },
       "(add maximum)"},
      {"gate", [=](Var p, const NamedVars& in) { return select(open(in), p, 0); }, "(select)"},
      {"all",
       [=](Var p, const NamedVars& in) { return select(open(in), maximum(p + in["row"], 0), 0); },
       "(add maximum select)"},
      {"bias, and what is behind it reads it twice",
       [](Var p, const NamedVars& in) {
         const Var biased = p + in["row"];
         return maximum(biased, 0) * biased;
       },
       "(add)"},
      {"a gate whose compare is read elsewhere too",
       [=](Var p, const NamedVars& in) {
         return select(open(in), p, 0) + select(open(in), in["h"], 2);
       },
       "(select)"},
      {"not_applied_product_read_twice",
       [](Var p, const NamedVars& in) { return (p + in["row"]) * p; }, ""},
      {"not_applied_added_to_itself", [](Var p, const NamedVars&) { return p + p; }, ""},
      {"not_applied_column", [](Var p, const NamedVars& in) { return p + in["column"]; }, ""},
      {"not_applied_matrix", [](Var p, const NamedVars& in) { return p + in["h"]; }, ""},
      {"not_applied_rows_of_another_length",
       [](Var p, const NamedVars& in) {
         return reshape(p, {5, 4}) + broadcast_in_dim(in["four"], {5, 4}, {1});
       },
       ""},
      {"not_applied_subtracted", [](Var p, const NamedVars& in) { return p - in["row"]; }, ""},
      {"not_applied_maximum_with_another_number",
       [](Var p, const NamedVars&) { return maximum(p, 1); }, ""},
      {"not_applied_minimum", [](Var p, const NamedVars&) { return minimum(p, 0); }, ""},
      {"not_applied_another_comparison",
       [](Var p, const NamedVars& in) { return select(compare(Comparison::GE, in["h"], 0), p, 0); },
       ""},
      {"not_applied_compared_with_another_number",
       [](Var p, const NamedVars& in) { return select(compare(Comparison::GT, in["h"], 1), p, 0); },
       ""},
      {"not_applied_another_number_where_closed",
       [=](Var p, const NamedVars& in) { return select(open(in), p, 1); }, ""},
      {"not_applied_the_other_way_round",
       [=](Var p, const NamedVars& in) { return select(open(in), 0, p); }, ""},
      {"not_applied_gate_of_another_dtype",
       [](Var p, const NamedVars& in) {
         return select(compare(Comparison::GT, in["whole"], 0), p, 0);
       },
       ""},
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const EpilogueCase& one : cases) {
    SCOPED_TRACE(one.name);
    Builder builder;
    std::vector<NamedVar> vars;
    const std::pair<std::string, Type> declared[] = {
        {"x", {DType::f32, {4, 3}}},      {"w", {DType::f32, {3, 5}}},
        {"row", {DType::f32, {1, 5}}},    {"vector", {DType::f32, {5}}},
        {"column", {DType::f32, {4, 1}}}, {"four", {DType::f32, {4}}},
        {"h", {DType::f32, {4, 5}}},      {"whole", {DType::i32, {4, 5}}}};
    for (const auto& [name, type] : declared) {
      vars.push_back({name, Var(builder, builder.input(name, type))});
    }
    const NamedVars in(std::move(vars), Category::invalid_argument);
    builder.output("y", one.make(matmul(in["x"], in["w"]), in).id());
    const Program program = builder.finish();
    CpuProgram compiled(program, {.threads = 1});
    const std::string text = compiled.plan().print();
    const std::string product = "4x5x3" + (one.absorbed.empty() ? "" : " " + one.absorbed) + " (in";
    EXPECT_THAT(text, ::testing::HasSubstr(product));
    std::vector<Tensor> inputs = inputs_of(program, 9);
    EXPECT_TRUE(near(compiled.run(inputs)[0], interpret(program, inputs)[0], {0, 1e-6})) << text;
    const std::span<float> h = inputs[6].data<float>();
    for (const float value : {nan, inf, -inf, -0.0F}) {
      inputs[0].data<float>()[0] = value;
      inputs[2].data<float>()[1] = value;
      h[0] = h[7] = value;
      EXPECT_TRUE(near(compiled.run(inputs)[0], interpret(program, inputs)[0], {0, 1e-6})) << text;
    }
  }
}

// What reads the product repeats it.
TEST(Epilogue, ProductThatIsRepeated_StandsAlone) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {5, 3}}));
  const Var w(builder, builder.input("w", {DType::f32, {3, 1}}));
  const Var h(builder, builder.input("h", {DType::f32, {5, 5}}));
  const Var row(builder, builder.input("row", {DType::f32, {1, 5}}));
  builder.output("sum", (matmul(x, w) + row).id());
  builder.output("gated", select(compare(Comparison::GT, h, 0), matmul(2 * x, w), 0).id());
  expect_agreement(builder.finish(), 4);
}

// Every matrix of the batch has one row, and all that is added is as long as the result.
TEST(Epilogue, BatchOfSingleRows_IsNoBias) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {4, 1, 3}}));
  const Var w(builder, builder.input("w", {DType::f32, {4, 3, 5}}));
  const Var h(builder, builder.input("h", {DType::f32, {4, 1, 5}}));
  builder.output("y", (dot_general(x, w, {{0}, {0}, {2}, {1}, DType::f32}) + h).id());
  expect_agreement(builder.finish(), 4);
}

// Biases change behind the loop that sums up their gradient, also where it runs in many parts.
TEST(Steps, PlainUpdates_AgreeWithTheInterpreter) {
  const std::vector<std::int64_t> networks[] = {
      {2, 8, 2}, {6, 5, 3}, {4, 1, 2}, {3, 2500, 4}, {3, 64, 70}};
  for (const std::vector<std::int64_t>& sizes : networks) {
    for (const std::int64_t rows : {1, 2, 4, 100}) {
      for (const Target& target : {Target::cpu(), Target::matmul_only()}) {
        SCOPED_TRACE(std::to_string(sizes[1]) + " wide, " + std::to_string(rows) + " rows");
        const TrainingSpec spec = classifier(sizes, sgd());
        TrainingSession session = session_of(spec, target);
        std::vector<Tensor> inputs{numbers({DType::f32, {rows, sizes[0]}}, 3),
                                   Tensor(DType::i32, {rows})};
        for (const Tensor& parameter : session.parameters()) inputs.push_back(parameter);
        inputs.push_back(Tensor::scalar<std::int64_t>(1));
        const std::vector<Tensor> want =
            interpret(step_program(session.prepared({{"B", rows}})), inputs);
        const double loss = session.step(std::vector{inputs[0], inputs[1]});
        EXPECT_NEAR(loss, want[0].element(0).as_double(), 1e-5);
        for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
          EXPECT_TRUE(near(session.parameters()[i], want[1 + i], {0, 1e-5}))
              << session.plan({{"B", rows}}).print();
        }
      }
    }
  }
}

// The old value is read behind the product: by another parameter's update.
TEST(UpdateFold, ParameterThatIsReadLater_IsRightAllTheSame) {
  Builder builder;
  const Type type{DType::f32, {3, 3}};
  const Var x(builder, builder.input("x", type));
  const Var p(builder, builder.input("p", type));
  const Var q(builder, builder.input("q", type));
  const Var next_p = p - 0.5 * matmul(x, q);
  const Var next_q = q - 0.5 * matmul(next_p, p);
  builder.output("p", next_p.id());
  builder.output("q", next_q.id());
  const Program program = builder.finish();
  std::vector<Tensor> inputs = inputs_of(program, 3);
  const std::vector<Tensor> want = interpret(program, inputs);
  cpu::PlanTask task = cpu::PlanTask::plain(program);
  task.memory[1] = inputs[1].bytes();
  task.memory[2] = inputs[2].bytes();
  task.commits = {1, 2};
  Plan plan = cpu::make_plan(program, task, cpu::make_pool(1));
  plan.bind(0, inputs[0].bytes().data());
  plan.run();
  EXPECT_TRUE(near(inputs[1], want[0], {0, 1e-6})) << plan.print();
  EXPECT_TRUE(near(inputs[2], want[1], {0, 1e-6})) << plan.print();
}

TEST(Memory, Arena_IsLittleMoreThanWhatIsLive) {
  for (const Target& target : {Target::cpu(), Target::matmul_only()}) {
    TrainingSession session = session_of(
        classifier({128, 96, 64, 80, 10}, std::make_shared<AdamW>(AdamW::Settings{})), target);
    const Plan& plan = session.plan({{"B", 32}});
    EXPECT_LE(static_cast<double>(plan.arena_bytes()), 1.1 * static_cast<double>(plan.live_bytes()))
        << plan.print();
  }
}

TEST(Threads, Number_ChangesNoBit) {
  // Large enough for the products to be cut.
  const TrainingSpec spec = classifier({300, 256, 10}, sgd());
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 2, 3}) {
    TrainingSession session = session_of(spec, Target::cpu(), threads);
    for (std::uint64_t i = 0; i < 3; ++i) {
      session.step(
          std::vector{numbers({DType::f32, {256, 300}}, i), numbers({DType::i32, {256}}, i)});
    }
    results.emplace_back(session.parameters().begin(), session.parameters().end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Groups ---------------------------------------------------------------------------------------

// Diamonds through a product, a sum over rows, and a transpose: what is behind one of them may not
// join the loop in front of it, nor a loop that both ends read.
TEST(Groups, Diamonds_MakeNoCircle) {
  using Cut = std::function<Var(Var)>;
  const Cut cuts[] = {
      [](Var x) { return matmul(x, x); },
      [](Var x) {
        return broadcast_in_dim(sum(x, {0}), {4, 4}, {1});
      },
      [](Var x) { return transpose(x); },
      [](Var x) {
        return x * broadcast_in_dim(sum(x), {4, 4}, {});
      },
      [](Var x) {
        return broadcast_in_dim(sum(x, {1}), {4, 4}, {0}) + sum(x, {0}, KeepDims::yes);
      },
  };
  for (const Cut& first : cuts) {
    for (const Cut& second : cuts) {
      Builder builder;
      const Var x(builder, builder.input("x", {DType::f64, {4, 4}}));
      const Var a = tanh(x);
      const Var b = a * 0.5;
      const Var c = tanh(first(a) * 0.25) + b;
      const Var d = tanh(x) - tanh(second(b) * 0.125);
      const Var e = tanh(second(c) * 0.0625) * d + a;
      builder.output("y", (e + c * b).id());
      builder.output("d", d.id());
      expect_agreement(builder.finish(), 11);
    }
  }
}

// Values of the shapes that loops tell apart, combined in every way.
Program random_elementwise(std::uint64_t seed) {
  Draw64 draw(seed);
  const auto rows = static_cast<std::int64_t>(1 + draw.below(5));
  const auto columns = static_cast<std::int64_t>(1 + draw.below(5));
  const Shape full{rows, columns};
  Builder builder;
  std::vector<Var> values;
  const DType dtype = draw.one_in(2) ? DType::f64 : DType::f32;
  const Shape shapes[] = {full, full, {rows, 1}, {1, columns}, {1, 1}, {}, {columns, rows}};
  for (const Shape& shape : shapes) {
    values.emplace_back(builder,
                        builder.input("x" + std::to_string(values.size()), {dtype, shape}));
  }
  const auto pick = [&] {
    return values[static_cast<std::size_t>(draw.below(std::ssize(values)))];
  };
  const std::int64_t nodes = 8 + draw.below(30);
  while (std::ssize(builder.nodes()) < nodes) {
    const Var x = pick();
    const Var y = pick();
    try {
      switch (draw.below(14)) {
        case 0:
          values.push_back(tanh(x));
          break;
        case 1:
          values.push_back(x * y * 0.5);
          break;
        case 2:
          values.push_back(tanh(x + y));
          break;
        case 3:
          values.push_back(maximum(x, y) - 0.25);
          break;
        case 4:
          values.push_back(sum(x, {draw.below(2)}, KeepDims::yes) * 0.25);
          break;
        case 5:
          values.push_back(reduce(Reduction::max, x, {draw.below(2)}, KeepDims::yes));
          break;
        case 6:
          values.push_back(broadcast_in_dim(x, full, x.rank() == 0 ? Axes{} : Axes{0, 1}));
          break;
        case 7:
          values.push_back(reshape(sum(x), {1, 1}) * 0.125);
          break;
        case 8:
          values.push_back(tanh(transpose(x)) + y);
          break;
        case 9:
          values.push_back(tanh(matmul(x, y)));
          break;
        case 10:
          values.push_back(select(compare(Comparison::LT, values[0], values[2]), x, y));
          break;
        case 11:
          values.push_back(maximum(tanh(matmul(x, y)) * 0.5 + matmul(y, x) + pick(), 0));
          break;
        case 12:
          values.push_back(select(compare(Comparison::GT, pick(), 0), matmul(x, y) + pick(), 0));
          break;
        default:
          values.push_back(reshape(mean(x, {1}), {rows, 1}) - y);
          break;
      }
    } catch (const Error&) {
      continue;  // of shapes that do not fit
    }
  }
  for (int i = 0; i < 3; ++i) builder.output("y" + std::to_string(i), pick().id());
  builder.output("last", values.back().id());
  return builder.finish();
}

TEST(Groups, RandomPrograms_AgreeWithTheInterpreter) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_agreement(random_elementwise(seed), seed);
    if (HasFatalFailure()) return;
  }
}

// Found among random programs: of two groups, each reads what a later member of the other makes.
// What comes behind them is one loop all the same.
TEST(Groups, ThatWouldWaitForEachOther_AreTakenApart) {
  Builder builder;
  const Var x(builder, builder.input("x", {DType::f32, {1, 2}}));
  const Var one(builder, builder.input("one", {DType::f32, {1, 1}}));
  const Var column(builder, builder.input("column", {DType::f32, {2, 1}}));
  const auto share = [](Var v) { return reshape(sum(v), {1, 1}) * 0.125; };
  const Var less = compare(Comparison::LT, x, one);
  const Var square = select(less, column, one);
  const Var t = tanh(matmul(x, square));
  const Var total = share(x);
  const Var later = share(t);
  const Var picked = select(less, square, total) * one * 0.5;
  const Var both = total * later * 0.5;
  builder.output("later", later.id());
  builder.output("both", both.id());
  builder.output("t", t.id());
  const Var y = share(tanh(transpose(x)) + picked);
  const Var wide(builder, builder.input("wide", {DType::f32, {3, 3}}));
  builder.output("behind", (tanh(wide * y) * 0.5).id());
  const Program program = builder.finish();
  expect_agreement(program, 5);
  EXPECT_EQ(count(CpuProgram(program).plan().print(), "3x3 (multiply tanh multiply)"), 1u);
}

// The axes of heads and batches stay where they are: products read and write them by strides.
TEST(Layouts, AttentionProducts_NeedNoTranspose) {
  Builder builder;
  const Type type{DType::f32, {2, 6, 12}};
  const auto heads = [](Var x) { return transpose(reshape(x, {2, 6, 3, 4}), {0, 2, 1, 3}); };
  const Var q = heads(Var(builder, builder.input("q", type)));
  const Var k = heads(Var(builder, builder.input("k", type)));
  const Var v = heads(Var(builder, builder.input("v", type)));
  const Var scores = dot_general(q, k, {{0, 1}, {0, 1}, {3}, {3}, DType::f32});
  const Var mixed = dot_general(softmax(scores, 3), v, {{0, 1}, {0, 1}, {3}, {2}, DType::f32});
  builder.output("y", reshape(transpose(mixed, {0, 2, 1, 3}), {2, 6, 12}).id());
  const Program program = builder.finish();
  expect_agreement(program, 3);
  CpuProgram compiled(program);
  EXPECT_EQ(compiled.plan().kernels(), 3u) << compiled.plan().print();
}

}  // namespace
}  // namespace mulgrad
