// Both mean expansions on random programs, each held to the clauses as
// tests/support/random_check.cc spells them. The environment may set MULGRAD_RANDOM_SEED and
// MULGRAD_RANDOM_PROGRAMS (how many; the fractions are asserted from 1,000 on).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/expr.h"
#include "core/rewrite/rewriter.h"
#include "core/text.h"
#include "lowering/expand_mean.h"
#include "lowering/expand_mean_derivative.h"
#include "tests/support/random_check.h"
#include "tests/support/random_program.h"
#include "tests/support/scale.h"

namespace mulgrad {
namespace {

using testing::Candidate;
using testing::Depth;
using testing::Failure;
using testing::Fault;
using testing::Plant;
using testing::RandomProgram;
using testing::Subject;

constexpr std::int64_t kPrograms = testing::kSanitized ? 10'000 : 100'000;

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

std::uint64_t seed() {
  return static_cast<std::uint64_t>(from_environment("MULGRAD_RANDOM_SEED", 20'240));
}

std::int64_t programs() { return from_environment("MULGRAD_RANDOM_PROGRAMS", kPrograms); }

// Seeds of neighbours must not overlap: SplitMix64 walks in equal steps.
std::uint64_t seed_of(std::int64_t program) {
  testing::Draw64 draw(seed() + static_cast<std::uint64_t>(program) * 0xD1342543DE82EF95u);
  return draw.bits();
}

// Is each plant what the generator meant it to be, and is there no other good region? Both the
// generator and the judge of these tests would have to be wrong in the same way.
::testing::AssertionResult as_planted(const RandomProgram& made, const Subject& subject) {
  std::map<std::int64_t, int> judged;
  for (const Candidate& candidate : subject.judge(made.program)) {
    judged[candidate.node] = candidate.clause;
  }
  for (const Plant& plant : made.plants) {
    const auto found = judged.find(plant.node);
    if (found != judged.end()) {
      if (found->second != plant.clause) {
        return ::testing::AssertionFailure() << "%" << plant.node << " fails clause "
                                             << found->second << ", planted: " << plant.clause;
      }
      judged.erase(found);
      continue;
    }
    if (plant.clause == Plant::kUnreached) continue;
    // A near miss without a divide is a line of the explanation all the same.
    const std::string line = brief_name(made.program, ValueId::node(plant.node)) + ": clause " +
                             std::to_string(plant.clause) + ":";
    const auto lines = subject.pass.explain(made.program);
    if (std::ranges::none_of(lines, [&](const auto& text) { return text.starts_with(line); })) {
      return ::testing::AssertionFailure() << "no explanation begins with " << line;
    }
  }
  for (const auto& [node, clause] : judged) {
    if (clause == 0) return ::testing::AssertionFailure() << "%" << node << " is good by accident";
  }
  return ::testing::AssertionSuccess();
}

struct Counts {
  std::int64_t programs = 0;
  std::int64_t with_good = 0;
  std::int64_t planted = 0;
  std::int64_t fired = 0;
  std::int64_t nodes = 0;
  std::map<int, std::int64_t> near_misses;  // programs with one, by clause
};

void count(const RandomProgram& made, Counts& counts) {
  std::map<int, std::int64_t> of_clause;
  for (const Plant& plant : made.plants) ++of_clause[plant.clause];
  ++counts.programs;
  counts.nodes += std::ssize(made.program.nodes());
  counts.planted += of_clause[Plant::kGood];
  counts.with_good += of_clause[Plant::kGood] > 0 ? 1 : 0;
  for (const auto& [clause, times] : of_clause) {
    if (clause > 0 && times > 0) ++counts.near_misses[clause];
  }
}

void print_counts(const std::string& pass, const Counts& counts) {
  const auto percent = [&](std::int64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(counts.programs);
  };
  std::printf(
      "%s, seed %llu: %lld programs of %.1f nodes; %lld regions planted in %.1f %%, %lld fired; "
      "near misses:",
      pass.c_str(), static_cast<unsigned long long>(seed()),
      static_cast<long long>(counts.programs),
      static_cast<double>(counts.nodes) / static_cast<double>(counts.programs),
      static_cast<long long>(counts.planted), percent(counts.with_good),
      static_cast<long long>(counts.fired));
  for (const auto& [clause, times] : counts.near_misses) {
    std::printf(" clause %d in %.1f %%", clause, percent(times));
  }
  std::printf("\n");
}

void expect_fractions(const Counts& counts, std::span<const int> clauses) {
  EXPECT_EQ(counts.fired, counts.planted);
  if (counts.programs < 1000) return;
  EXPECT_GE(counts.with_good * 100, counts.programs * 30);
  for (const int clause : clauses) {
    const auto found = counts.near_misses.find(clause);
    ASSERT_NE(found, counts.near_misses.end()) << "clause " << clause;
    EXPECT_GE(found->second * 100, counts.programs * 5) << "clause " << clause;
  }
}

// Every program is judged and run; every 32nd goes through its text, too. False after a failure,
// which is made small and shown.
bool holds(const Subject& subject, const RandomProgram& made, std::int64_t number, Counts& counts) {
  count(made, counts);
  if (const auto planted = as_planted(made, subject); !planted) {
    ADD_FAILURE() << "program " << number << " of seed " << seed() << ": " << planted.message()
                  << "\n"
                  << print(made.program);
    return false;
  }
  const Depth depth = number % 32 == 0 ? Depth::with_text : Depth::without_text;
  const auto failure = testing::check(subject, made.program, depth);
  if (!failure) {
    counts.fired += std::ssize(subject.pass.run(made.program).regions);
    return true;
  }
  const Program small = testing::shrink(subject, made.program, failure->fault);
  ADD_FAILURE() << "program " << number << " of seed " << seed() << ": "
                << to_string(failure->fault) << ": " << failure->text << "; at its smallest:\n"
                << print(small);
  return false;
}

TEST(RandomPrograms, MeanDerivative_FiresExactlyOnThePlantedRegions) {
  const Subject subject = testing::mean_derivative_subject(expand_mean_derivative());
  Counts counts;
  for (std::int64_t i = 0; i < programs(); ++i) {
    if (!holds(subject, testing::random_mean_derivative(seed_of(i)), i, counts)) break;
  }
  print_counts(subject.pass.name, counts);
  expect_fractions(counts, testing::kMeanDerivativeClauses);
}

TEST(RandomPrograms, Mean_FiresExactlyOnThePlantedRegions) {
  const Subject subject = testing::mean_subject(expand_mean(OutsideDomain::leave));
  Counts counts;
  for (std::int64_t i = 0; i < programs() / 5; ++i) {
    if (!holds(subject, testing::random_mean(seed_of(i)), i, counts)) break;
  }
  print_counts(subject.pass.name, counts);
  expect_fractions(counts, testing::kMeanClauses);
}

// Failing closed: one mean outside of the domain refuses the program, and each is named.
TEST(RandomPrograms, MeanOutsideItsDomain_RefusesTheProgramAndIsNamed) {
  const Pass pass = expand_mean();
  std::int64_t refused = 0;
  for (std::int64_t i = 0; i < programs() / 20; ++i) {
    const Program program = testing::random_mean(seed_of(i)).program;
    std::vector<std::string> offenders;
    for (const Candidate& candidate : testing::judge_mean(program)) {
      if (candidate.clause == 0) continue;
      offenders.push_back(program.describe(ValueId::node(candidate.node)) + ": clause " +
                          std::to_string(candidate.clause) + ":");
    }
    try {
      EXPECT_EQ(pass.run(program).program, expand_mean(OutsideDomain::leave).run(program).program);
      ASSERT_TRUE(offenders.empty()) << print(program);
    } catch (const Error& error) {
      ++refused;
      ASSERT_FALSE(offenders.empty()) << print(program);
      for (const std::string& offender : offenders) {
        ASSERT_NE(std::string(error.what()).find(offender), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GT(refused, 0);
}

// --- rewriters with one mistake each, which the checks must find and make small ---

using Emit = std::function<Var(Rewriter&, const mean_derivative::Facts&)>;

Var product(Rewriter& rewriter, const mean_derivative::Facts& facts) {
  const Literal one = Literal::one(facts.b_type.dtype);
  const Var left = fill(rewriter.builder(), one, {facts.b_type.shape[0], 1});
  const Var column = matmul(left, rewriter.at(*facts.g));
  const Var right = fill(rewriter.builder(), one, {1, facts.b_type.shape[1]});
  return matmul(column, right);
}

Var right_region(Rewriter& rewriter, const mean_derivative::Facts& facts) {
  if (!facts.g) return rewriter.at(*facts.b) * Scalar(1 / facts.d->as_double());
  return product(rewriter, facts) * Scalar(1 / facts.d->as_double());
}

Var scaled_by_the_sum_of_sizes(Rewriter& rewriter, const mean_derivative::Facts& facts) {
  const auto r = static_cast<double>(facts.b_type.shape[0].size());
  const auto c = static_cast<double>(facts.b_type.shape[1].size());
  return product(rewriter, facts) * Scalar(1 / (r + c));
}

Var not_scaled(Rewriter& rewriter, const mean_derivative::Facts& facts) {
  return -product(rewriter, facts);
}

// The facts, and those of divide(literal, b) as if they were those of divide(b, literal): what is
// left of clause 1 without its finite divisor, which clause 5 demands again.
mean_derivative::Facts gather_from_either_side(const Program& program, const Uses& uses,
                                               ValueId q) {
  mean_derivative::Facts facts = mean_derivative::gather(program, uses, q);
  const Node& node = program.node(q);
  if (!std::holds_alternative<Divide>(node.op) || !node.operands[0].is_literal()) return facts;
  const ValueId b = node.operands[1].value();
  if (b.is_input() || !std::holds_alternative<BroadcastInDim>(program.node(b).op)) return facts;
  facts.b = b;
  facts.d = node.operands[0].literal();
  facts.g = program.node(b).operands[0].value();
  facts.b_type = program.type(b);
  facts.g_type = program.type(*facts.g);
  facts.b_uses = uses.count(b);
  return facts;
}

// As the pass, but for one clause and for what it emits.
Pass mistaken(int ignored, Emit emit) {
  Pass pass = expand_mean_derivative();
  pass.explain = nullptr;
  pass.run = [ignored, emit](const Program& program) {
    using namespace mean_derivative;
    const Uses uses(program);
    std::vector<Replacement> replacements;
    for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
      const auto look = ignored == 1 ? gather_from_either_side : gather;
      const Facts facts = look(program, uses, ValueId::node(i));
      if (!facts.b || !facts.d) continue;
      bool holds = true;
      for (int clause = 1; clause <= 7 && holds; ++clause) {
        if (clause == ignored) continue;
        if (clause == 4 && !facts.g) continue;  // there is none when clause 2 is ignored
        holds = !kClauses[clause - 1](facts);
      }
      if (!holds) continue;
      std::vector<std::int64_t> consumed;
      if (facts.b_uses == 1 && facts.g) consumed.push_back(facts.b->index());
      replacements.push_back({i, consumed, expand_mean_derivative().numerics,
                              [facts, emit](Rewriter& rewriter) { return emit(rewriter, facts); }});
    }
    return apply(program, "expand_mean_derivative", replacements);
  };
  return pass;
}

Pass never_firing() {
  Pass pass = expand_mean_derivative();
  pass.run = [](const Program& program) { return PassResult{program, {}, false}; };
  return pass;
}

// Fires once more on what it has written: a scaled product.
Pass never_at_rest() {
  Pass pass = expand_mean_derivative();
  pass.run = [](const Program& program) {
    PassResult result = expand_mean_derivative().run(program);
    for (const Node& node : program.nodes()) {
      const auto* const product = std::get_if<DotGeneral>(&node.op);
      if (product != nullptr && node.operands[1].value().is_node() &&
          std::holds_alternative<Fill>(program.node(node.operands[1].value()).op)) {
        result.changed = true;
      }
    }
    return result;
  };
  return pass;
}

Pass naming_the_next_clause() {
  Pass pass = expand_mean_derivative();
  pass.explain = [](const Program& program) {
    std::vector<std::string> lines = expand_mean_derivative().explain(program);
    for (std::string& line : lines) {
      const std::size_t number = line.find("clause ") + 7;
      if (line.find("clause ") != std::string::npos) ++line[number];
    }
    return lines;
  };
  return pass;
}

struct Mistake {
  const char* name;
  Pass pass;
  std::vector<Fault> faults;  // one of these is found first
  std::int64_t nodes;         // of the smallest program, at most
};

using Generator = RandomProgram (*)(std::uint64_t);

void expect_found(const Mistake& mistake, const Subject& subject, Generator generate) {
  SCOPED_TRACE(mistake.name);
  std::optional<Failure> failure;
  Program found;
  std::int64_t tried = 0;
  while (!failure && tried < 2000) {
    found = generate(seed_of(tried++)).program;
    failure = testing::check(subject, found, Depth::with_text);
  }
  ASSERT_TRUE(failure) << "not found in " << tried << " programs";
  EXPECT_NE(std::ranges::find(mistake.faults, failure->fault), mistake.faults.end())
      << to_string(failure->fault) << ": " << failure->text;
  const Program small = testing::shrink(subject, found, failure->fault);
  EXPECT_LE(std::ssize(small.nodes()), mistake.nodes) << print(small);
  EXPECT_EQ(small.outputs().size(), 1u);
  std::printf("a rewriter that %s: %s after %lld programs, %zu nodes made %zu\n", mistake.name,
              std::string(to_string(failure->fault)).c_str(), static_cast<long long>(tried),
              found.nodes().size(), small.nodes().size());
}

TEST(RandomPrograms, MistakenRewriterOfDerivatives_IsFoundAndItsProgramMadeSmall) {
  const std::vector<Mistake> mistakes = {
      {"never fires", never_firing(), {Fault::fired_elsewhere}, 2},
      {"ignores clause 1", mistaken(1, right_region), {Fault::fired_elsewhere}, 2},
      {"ignores clause 2", mistaken(2, right_region), {Fault::fired_elsewhere}, 1},
      {"ignores clause 3", mistaken(3, right_region), {Fault::fired_elsewhere, Fault::threw}, 2},
      {"ignores clause 4", mistaken(4, right_region), {Fault::fired_elsewhere, Fault::threw}, 2},
      {"ignores clause 5", mistaken(5, right_region), {Fault::fired_elsewhere}, 2},
      {"ignores clause 7", mistaken(7, right_region), {Fault::fired_elsewhere}, 3},
      {"scales by 1/(r+c)", mistaken(0, scaled_by_the_sum_of_sizes), {Fault::values}, 2},
      {"does not scale", mistaken(0, not_scaled), {Fault::structure}, 2},
      {"is never at rest", never_at_rest(), {Fault::structure, Fault::second_run}, 2},
      {"names another clause", naming_the_next_clause(), {Fault::explanation}, 2},
  };
  for (const Mistake& mistake : mistakes) {
    expect_found(mistake, testing::mean_derivative_subject(mistake.pass),
                 testing::random_mean_derivative);
  }
}

// Means of static matrices by products with ones, where `good` says so, scaled by a function of the
// sizes.
Pass mistaken_mean(std::function<bool(const Type&, const Mean&)> good,
                   double (*scale)(double r, double c)) {
  Pass pass = expand_mean(OutsideDomain::leave);
  pass.explain = nullptr;
  pass.run = [good, scale](const Program& program) {
    const std::vector<bool> reached = reachable_nodes(program);
    std::vector<Replacement> replacements;
    for (std::int64_t i = 0; i < std::ssize(program.nodes()); ++i) {
      const Node& node = program.nodes()[static_cast<std::size_t>(i)];
      const Mean* const mean = std::get_if<Mean>(&node.op);
      if (mean == nullptr || !reached[static_cast<std::size_t>(i)]) continue;
      const Type x = program.type(node.operands[0].value());
      if (x.rank() != 2 || !x.shape.is_static() || !good(x, *mean)) continue;
      replacements.push_back({i, {}, {}, [i, scale](Rewriter& rewriter) {
                                const Var x = rewriter.operands(i)[0];
                                const Dim r = x.shape()[0];
                                const Dim c = x.shape()[1];
                                const Literal one = Literal::one(x.dtype());
                                const Var column = fill(rewriter.builder(), one, {c, 1});
                                const Var sums = matmul(x, column);
                                const Var row = fill(rewriter.builder(), one, {1, r});
                                const double by = scale(static_cast<double>(r.size()),
                                                        static_cast<double>(c.size()));
                                const Type type = rewriter.source().type(ValueId::node(i));
                                return reshape(matmul(row, sums) * by, type.shape);
                              }});
    }
    return apply(program, "expand_mean", replacements);
  };
  return pass;
}

TEST(RandomPrograms, MistakenRewriterOfMeans_IsFoundAndItsProgramMadeSmall) {
  const auto inverse_product = [](double r, double c) { return 1 / (r * c); };
  const auto inverse_sum = [](double r, double c) { return 1 / (r + c); };
  const auto ignoring = [](int clause) {
    return [clause](const Type& x, const Mean& mean) {
      const bool has_elements = x.shape[0].size() > 0 && x.shape[1].size() > 0;
      return (clause == 3 || mean.axes.size() == 2) && (clause == 4 || has_elements) &&
             (clause == 5 || x.dtype == DType::f32 || x.dtype == DType::f64);
    };
  };
  const std::vector<Mistake> mistakes = {
      {"never fires",
       mistaken_mean([](const Type&, const Mean&) { return false; }, inverse_product),
       {Fault::fired_elsewhere},
       1},
      {"ignores clause 3",
       mistaken_mean(ignoring(3), inverse_product),
       {Fault::fired_elsewhere, Fault::threw},
       1},
      {"ignores clause 4",
       mistaken_mean(ignoring(4), inverse_product),
       {Fault::fired_elsewhere},
       1},
      {"ignores clause 5",
       mistaken_mean(ignoring(5), inverse_product),
       {Fault::fired_elsewhere},
       1},
      {"scales by 1/(r+c)", mistaken_mean(ignoring(0), inverse_sum), {Fault::values}, 1},
  };
  for (const Mistake& mistake : mistakes) {
    expect_found(mistake, testing::mean_subject(mistake.pass), testing::random_mean);
  }
  // Without a mistake the same code passes, so nothing else of it is what was found.
  const Subject right = testing::mean_subject(mistaken_mean(ignoring(0), inverse_product));
  for (std::int64_t i = 0; i < 500; ++i) {
    const Program program = testing::random_mean(seed_of(i)).program;
    const auto failure = testing::check(right, program, Depth::with_text);
    ASSERT_FALSE(failure) << failure->text << "\n" << print(program);
  }
}

}  // namespace
}  // namespace mulgrad
