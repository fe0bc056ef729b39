// The suite as others run it: our own command passes every case, and a rewriter that is wrong fails
// by the name of the case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/matcher/suite/cases.h"
#include "tests/matcher/suite/judge.h"
#include "tests/matcher/suite/process.h"

namespace mulgrad::matcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using Names = std::set<std::string>;

const std::string kBin = MULGRAD_BIN_DIR;
const std::string kCases = MULGRAD_SOURCE_DIR "/tests/matcher/cases";
const std::string kOurs = kBin + "/mulgrad opt --passes={pass} -";

Reply run_suite(const std::string& flags) {
  return run_command("'" + kBin + "/mulgrad-matcher-suite' " + flags, "", std::chrono::minutes(10));
}

struct Verdict {
  int code = 0;
  Names failed;  // claims
};

// Of a rewriter on the cases of expand_mean_derivative.
Verdict verdict(const std::string& command, const std::string& flags = {}) {
  const Reply reply =
      run_suite("--json --pass=expand_mean_derivative --exec='" + command + "' " + flags);
  EXPECT_EQ(reply.ending, Ending::exited) << reply.errors;
  Verdict result{reply.code, {}};
  const auto json = nlohmann::json::parse(reply.output);
  for (const auto& entry : json.at("results")) {
    if (!entry.at("passed").get<bool>()) result.failed.insert(entry.at("claim"));
  }
  EXPECT_EQ(result.code, result.failed.empty() ? 0 : 4);
  return result;
}

Names failed_by(const std::string& flags) {
  return verdict(kBin + "/broken-rewriter " + flags).failed;
}

Names claims(const std::string& pass, Expect expect) {
  Names names;
  for (const Case& given : read_cases(kCases, pass)) {
    if (given.expect == expect) names.insert(given.claim);
  }
  return names;
}

TEST(MatcherSuite, OurCommand_PassesEveryCaseToTheLastNode) {
  const Reply reply = run_suite("--exact --exec='" + kOurs + "'");
  EXPECT_EQ(reply.code, 0) << reply.output;
  EXPECT_THAT(reply.output,
              HasSubstr("pass expand_mean_derivative/not_applied_divisor_16  clause 5"));
  EXPECT_THAT(reply.output, HasSubstr(" cases, "));
  EXPECT_THAT(reply.output, HasSubstr(" of them positive: "));
  EXPECT_THAT(reply.output, HasSubstr(", 0 fail\n"));
}

// The broken ones below are broken in one way: nothing else is wrong with them.
TEST(MatcherSuite, RewriterWithoutAFault_PassesEveryCase) { EXPECT_EQ(failed_by(""), Names{}); }

TEST(MatcherSuite, RewriterThatNeverFires_FailsOnEveryPositive) {
  const Names positives = claims("expand_mean_derivative", Expect::rewritten);
  EXPECT_GE(positives.size(), 20u);
  EXPECT_EQ(verdict("cat").failed, positives);

  const Reply reply = run_suite("--pass=expand_mean --exec=cat");
  EXPECT_EQ(reply.code, 4);
  for (const std::string& claim : claims("expand_mean", Expect::rewritten)) {
    EXPECT_THAT(reply.output, HasSubstr("FAIL expand_mean/" + claim + "  "));
  }
}

TEST(MatcherSuite, RewriterWithoutClause1_TakesADivisorFromAnywhere) {
  EXPECT_EQ(failed_by("--ignore-clause=1"),
            (Names{"not_applied_divisor_is_a_fill", "not_applied_divisor_is_a_rank_0_fill",
                   "not_applied_literal_on_the_left"}));
}

TEST(MatcherSuite, RewriterWithoutClause2_TakesAnyOpForABroadcast) {
  EXPECT_EQ(failed_by("--ignore-clause=2"), (Names{"not_applied_single_element_input",
                                                   "not_applied_single_element_under_another_op"}));
}

TEST(MatcherSuite, RewriterWithoutClause3_TakesAnyType) {
  EXPECT_EQ(failed_by("--ignore-clause=3"),
            (Names{"not_applied_bf16", "not_applied_empty", "not_applied_f16", "not_applied_i32",
                   "not_applied_rank_3"}));
}

TEST(MatcherSuite, RewriterWithoutClause4_TakesAnySource) {
  EXPECT_EQ(failed_by("--ignore-clause=4"),
            (Names{"not_applied_source_is_a_column", "not_applied_source_is_a_row",
                   "not_applied_source_is_a_scalar", "not_applied_source_is_of_rank_1"}));
}

TEST(MatcherSuite, RewriterWithoutClause5_TakesAnyDivisor) {
  EXPECT_EQ(
      failed_by("--ignore-clause=5"),
      (Names{"good_chain_beside_a_bad_one", "not_applied_count_overflows",
             "not_applied_count_overflows_to_the_divisor", "not_applied_count_rounded_down_in_f32",
             "not_applied_divisor_16", "not_applied_divisor_a_little_off_in_f32",
             "not_applied_divisor_a_little_off_in_f64", "not_applied_divisor_is_the_sum_of_sizes",
             "not_applied_divisor_negative",
             "not_applied_divisor_that_rounds_to_the_count_in_f32_only",
             "not_applied_divisor_zero"}));
}

TEST(MatcherSuite, RewriterWithoutClause6_TakesAnyTypeOfTheQuotient) {
  EXPECT_EQ(failed_by("--ignore-clause=6"), Names{"unbuildable_quotient_5x3"});
}

TEST(MatcherSuite, RewriterWithoutClause7_TakesABroadcastThatOthersRead) {
  EXPECT_EQ(failed_by("--ignore-clause=7"),
            (Names{"not_applied_broadcast_is_a_gradient_beside_the_quotient",
                   "not_applied_broadcast_is_an_output_alone", "not_applied_broadcast_is_captured",
                   "not_applied_broadcast_used_twice_by_another_node",
                   "not_applied_dead_second_use", "not_applied_second_use_of_the_broadcast",
                   "not_applied_two_quotients_of_one_broadcast"}));
}

TEST(MatcherSuite, RewriterThatScalesByAWrongDivisor_FailsOnPositives) {
  const Names shapes = {"f32_3x5", "f32_4x4", "f32_5x3",           "f64_3x5",
                        "f64_4x4", "f64_5x3", "hand_built_f32_2x3"};
  for (const char* divisor : {"sum", "rows"}) {
    const Names failed = failed_by(std::string("--divisor=") + divisor);
    EXPECT_THAT(failed, IsSupersetOf(shapes)) << divisor;
    EXPECT_THAT(claims("expand_mean_derivative", Expect::rewritten), IsSupersetOf(failed));
  }
  EXPECT_THAT(failed_by("--divisor=sum"), IsSupersetOf(Names{"f32_1x1", "f64_1x1"}));
}

TEST(MatcherSuite, RewriterThatSwapsTheFills_FailsOnPositivesThatAreNotSquare) {
  const Names failed = failed_by("--swap-fills");
  EXPECT_THAT(failed, IsSupersetOf(Names{"f32_3x5", "f32_5x3", "f64_3x5", "f64_5x3",
                                         "hand_built_f32_2x3", "quotient_used_many_times"}));
  EXPECT_FALSE(failed.contains("f64_4x4"));
  EXPECT_THAT(claims("expand_mean_derivative", Expect::rewritten), IsSupersetOf(failed));
}

// Whatever the expectation: a command that is no rewriter at all passes nothing.
TEST(MatcherSuite, CommandThatIsNoRewriter_FailsOnEveryCase) {
  const std::size_t count = read_cases(kCases, "expand_mean_derivative").size();
  for (const char* command : {"no-such-command-anywhere", "kill -SEGV $$", "echo nothing of use"}) {
    EXPECT_EQ(verdict(command).failed.size(), count) << command;
  }
}

TEST(RunCommand, Ending_IsToldApart) {
  const auto run = [](const std::string& command) {
    return run_command(command, "some input", std::chrono::minutes(1));
  };
  const Reply copied = run("cat; echo trouble >&2; exit 3");
  EXPECT_EQ(copied.ending, Ending::exited);
  EXPECT_EQ(copied.code, 3);
  EXPECT_EQ(copied.output, "some input");
  EXPECT_EQ(copied.errors, "trouble\n");
  EXPECT_EQ(run("kill -ABRT $$").ending, Ending::signalled);
  EXPECT_EQ(run("sh -c 'kill -ABRT $$'; exit $?").ending, Ending::signalled);
  EXPECT_EQ(run("no-such-command-anywhere").ending, Ending::not_run);
  EXPECT_EQ(run("true").output, "");
}

// Time is cut short for the one that never ends; its children end with it.
TEST(RunCommand, CommandThatHangs_IsKilled) {
  const Reply reply =
      run_command("echo begun; sleep 1000 & sleep 1000", "", std::chrono::milliseconds(200));
  EXPECT_EQ(reply.ending, Ending::out_of_time);
  EXPECT_EQ(fault(read_cases(kCases)[0], reply, Level::meaning), "no end within the time limit");
}

TEST(RunCommand, OutputWithoutEnd_IsCutOff) {
  const Reply reply = run_command("yes", "", std::chrono::minutes(5));
  EXPECT_EQ(reply.ending, Ending::signalled);
  EXPECT_EQ(reply.output.size(), std::size_t{64} << 20);
}

TEST(MatcherSuite, CommandLine_HasItsExitCodes) {
  EXPECT_EQ(run_suite("").code, 2);
  EXPECT_EQ(run_suite("--exec=cat --no-such-flag").code, 2);
  EXPECT_EQ(run_suite("--exec=cat --time-limit=0").code, 2);
  EXPECT_EQ(run_suite("--help").code, 0);
  EXPECT_EQ(run_suite("--exec=cat --pass=no_such_pass").code, 1);
  EXPECT_EQ(run_suite("--exec=cat --cases=/no/such/folder").code, 1);
}

// --- the judge, on replies made here ---

class MatcherJudge : public ::testing::Test {
 protected:
  static Case of(const std::string& pass, const std::string& claim) {
    for (Case& given : read_cases(kCases, pass)) {
      if (given.claim == claim) return given;
    }
    throw std::invalid_argument(claim);
  }

  static std::string judge(const Case& given, std::string output, int code = 0,
                           Level level = Level::meaning) {
    return fault(given, {Ending::exited, code, std::move(output), {}}, level).value_or("");
  }

  static std::string program(const std::string& body) {
    return "module @other {\n  func.func @main(%arg0: tensor<1x1xf64> {mulgrad.seed = \"loss\"}) "
           "-> "
           "(tensor<3x5xf64> {mulgrad.name = \"grad.x\"}) {\n" +
           body + "    return %q : tensor<3x5xf64>\n  }\n}\n";
  }

  const Case positive_ = of("expand_mean_derivative", "f64_3x5");
  const std::string scaled_ =
      "    %s = stablehlo.multiply %arg0, 6.666666666666667e-02 : tensor<1x1xf64>\n";
};

TEST_F(MatcherJudge, AnotherRegionOfTheSameMeaning_IsRightUnlessExactnessIsAsked) {
  const std::string other = program(scaled_ +
                                    "    %o = stablehlo.constant dense<1.0> : tensor<3x5xf64>\n"
                                    "    %q = stablehlo.multiply %o, %s : (tensor<3x5xf64>, "
                                    "tensor<1x1xf64>) -> tensor<3x5xf64>\n");
  EXPECT_EQ(judge(positive_, other), "");
  EXPECT_THAT(judge(positive_, other, 0, Level::exact), HasSubstr("another region"));
  EXPECT_EQ(judge(positive_, positive_.rewritten, 0, Level::exact), "");
}

TEST_F(MatcherJudge, BroadcastThatIsLeft_IsNamed) {
  EXPECT_EQ(
      judge(positive_, program(scaled_ + "    %q = stablehlo.broadcast_in_dim %s, dims = [0, 1] : "
                                         "(tensor<1x1xf64>) -> tensor<3x5xf64>\n")),
      "found 1 stablehlo.broadcast_in_dim, expected 0");
}

TEST_F(MatcherJudge, NaNThatSpreadsOrVanishes_IsNamed) {
  const std::string zero = program(
      "    %o = stablehlo.constant dense<6.666666666666667e-02> : tensor<3x5xf64>\n"
      "    %z = stablehlo.subtract %arg0, %arg0 : tensor<1x1xf64>\n"
      "    %g = stablehlo.add %arg0, %z : tensor<1x1xf64>\n"
      "    %q = stablehlo.multiply %o, %g : (tensor<3x5xf64>, tensor<1x1xf64>) -> "
      "tensor<3x5xf64>\n");
  EXPECT_THAT(judge(positive_, zero), HasSubstr("output \"grad.x\": found"));  // inf - inf
}

// The tolerances are those of the contract, not wider: two units of the scale's last place are
// seen.
TEST_F(MatcherJudge, ScaleThatIsOffByALittle_IsSeen) {
  for (const char* scale : {"6.666666666666669e-02", "6.666666666666665e-02"}) {
    std::string off = positive_.rewritten;
    off.replace(off.find("6.666666666666667e-02"), 21, scale);
    EXPECT_THAT(judge(positive_, off), HasSubstr("within {sign_of_zero, ulp(1)}"));
  }
  const Case mean = of("expand_mean", "f64_3x5");
  EXPECT_EQ(judge(mean, mean.rewritten), "");
  for (const char* scale : {"6.66666666667e-02", "0.125", "0.2"}) {
    std::string off = mean.rewritten;
    off.replace(off.find("6.666666666666667e-02"), 21, scale);
    EXPECT_THAT(judge(mean, off), HasSubstr("within {sign_of_zero, reassociates, ulp(1)}"));
  }
}

// 0 * x is 0 only while x is finite: an infinity in one row must not spoil the others' sum.
TEST_F(MatcherJudge, MeanThatIsWrongForAnInfinityAlone_IsSeen) {
  const Case mean = of("expand_mean", "f64_3x5");
  std::string off = mean.rewritten;
  const std::size_t at = off.find("    %1 = ");
  off.insert(at, "    %x = stablehlo.minimum %arg0, 1.0e+300 : tensor<3x5xf64>\n");
  off.replace(off.find("%arg0, %0"), 5, "%x");
  EXPECT_THAT(judge(mean, off), HasSubstr("expected 0x7FF0000000000000"));
}

// One mean is expanded although its neighbour is refused: the pass fails closed.
TEST_F(MatcherJudge, HalfARewrite_IsNoError) {
  const Case both = of("expand_mean", "refused_one_good_one_partial");
  const std::string half = R"(module @main attributes {mulgrad.form = "native"} {
  func.func @main(%arg0: tensor<3x5xf64> {mulgrad.name = "x"}) -> (tensor<f64> {mulgrad.name = "a"}, tensor<5xf64> {mulgrad.name = "b"}) {
    %0 = stablehlo.reduce(%arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x5xf64>) -> tensor<f64>
    %1 = stablehlo.divide %0, 15.0 : tensor<f64>
    %2 = mulgrad.mean %arg0 across dimensions = [0] : (tensor<3x5xf64>) -> tensor<5xf64>
    return %1, %2 : tensor<f64>, tensor<5xf64>
  }
}
)";
  EXPECT_THAT(judge(both, half), HasSubstr("another program"));
}

TEST_F(MatcherJudge, ProgramTooLargeToRun_IsNamed) {
  const std::string huge =
      program("    %h = stablehlo.constant dense<1.0> : tensor<1000x1000xf64>\n" + scaled_ +
              "    %o = stablehlo.constant dense<1.0> : tensor<3x5xf64>\n"
              "    %q = stablehlo.multiply %o, %s : (tensor<3x5xf64>, tensor<1x1xf64>) -> "
              "tensor<3x5xf64>\n");
  EXPECT_THAT(judge(positive_, huge), HasSubstr("more than 100000 elements"));
}

TEST_F(MatcherJudge, ChangedInterface_IsNamed) {
  std::string renamed = positive_.rewritten;
  renamed.replace(renamed.find("grad.x"), 6, "grad.y");
  EXPECT_THAT(judge(positive_, renamed), HasSubstr("the outputs are not the same"));
  std::string unseeded = positive_.rewritten;
  unseeded.replace(unseeded.find("mulgrad.seed"), 12, "mulgrad.name");
  EXPECT_THAT(judge(positive_, unseeded), HasSubstr("the inputs are not the same"));
}

TEST_F(MatcherJudge, NearMiss_NeedsExitCode0AndAnEqualProgram) {
  const Case near_miss = of("expand_mean_derivative", "not_applied_divisor_16");
  EXPECT_EQ(judge(near_miss, near_miss.program), "");
  EXPECT_EQ(judge(near_miss, near_miss.program, 0, Level::exact), "");
  EXPECT_THAT(judge(near_miss, near_miss.program, 1), HasSubstr("exit code 1"));
  EXPECT_THAT(judge(near_miss, positive_.rewritten), HasSubstr("found a changed program"));
  EXPECT_THAT(judge(near_miss, "no program"), HasSubstr("cannot be read"));
}

TEST_F(MatcherJudge, Error_IsAnExitCodeOrNoChange) {
  const Case refused = of("expand_mean", "refused_axis_0");
  EXPECT_EQ(judge(refused, "", 1), "");
  EXPECT_EQ(judge(refused, refused.program), "");
  EXPECT_THAT(judge(refused, positive_.program), HasSubstr("another program"));
  EXPECT_THAT(judge(refused, refused.program, 0, Level::exact), HasSubstr("expected the error"));
  EXPECT_THAT(judge(refused, "", 1, Level::exact), HasSubstr("unsupported_reduction"));
  EXPECT_EQ(fault(refused, {Ending::exited, 1, "", "x: unsupported_reduction: y"}, Level::exact),
            std::nullopt);
  const Case unbuildable = of("expand_mean_derivative", "unbuildable_divisor_text");
  EXPECT_EQ(judge(unbuildable, "", 1), "");
  EXPECT_EQ(judge(unbuildable, unbuildable.program), "");
  EXPECT_THAT(judge(unbuildable, positive_.rewritten), HasSubstr("another program"));
}

}  // namespace
}  // namespace mulgrad::matcher
