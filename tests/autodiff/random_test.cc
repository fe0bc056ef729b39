#include "autodiff/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::read_golden;
using testing::throws;

struct KnownAnswer {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> words;
};

// The three philox4x32-10 lines of Random123's kat_vectors.
const KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, PublishedKnownAnswers_Match) {
  for (const KnownAnswer& known : kKnownAnswers) {
    EXPECT_THAT(philox4x32_10(known.counter, known.key), ElementsAreArray(known.words));
  }
}

TEST(RandomStream, FirstBlock_IsCounterZeroOfTheStream) {
  RandomStream random(0, 0);
  for (const std::uint32_t word : kKnownAnswers[0].words) EXPECT_EQ(random.next_u32(), word);
}

class Pinned : public ::testing::Test {
 protected:
  RandomStream stream() const {
    return {golden_["seed"].get<std::uint64_t>(), golden_["stream"].get<std::uint64_t>()};
  }
  nlohmann::json golden_ = read_golden("nn.json")["random"];
};

TEST_F(Pinned, Words_MatchAnIndependentImplementation) {
  RandomStream random = stream();
  for (const auto& word : golden_["words"]) EXPECT_EQ(random.next_u32(), word);
}

TEST_F(Pinned, Uniforms_MatchAnIndependentImplementation) {
  RandomStream in_f32 = stream();
  for (const auto& value : golden_["uniform_f32"]) {
    EXPECT_EQ(in_f32.uniform_f32(), value.get<float>());
  }
  RandomStream in_f64 = stream();
  for (const auto& value : golden_["uniform_f64"]) {
    EXPECT_EQ(in_f64.uniform_f64(), value.get<double>());
  }
}

TEST_F(Pinned, Normals_MatchAnIndependentImplementation) {
  RandomStream random = stream();
  for (const auto& value : golden_["normal"]) {
    EXPECT_NEAR(random.normal(), value.get<double>(), 1e-15);  // C libraries differ in last bits
  }
}

TEST_F(Pinned, BoundedWithRejection_MatchesAnIndependentImplementation) {
  RandomStream random = stream();
  for (const auto& value : golden_["below"]) {
    EXPECT_EQ(random.below(golden_["bound"].get<std::uint64_t>()), value);
  }
}

TEST_F(Pinned, Shuffles_MatchAnIndependentImplementation) {
  for (const auto& shuffle : golden_["shuffled"]) {
    EXPECT_EQ(shuffled(shuffle["n"].get<std::int64_t>(), shuffle["seed"].get<std::uint64_t>(),
                       shuffle["epoch"].get<std::uint64_t>()),
              shuffle["order"].get<std::vector<std::int64_t>>());
  }
}

TEST(Shuffle, ThreeEntries_EveryOrderIsEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> counts;
  constexpr int kEpochs = 6000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++counts[shuffled(3, 42, epoch)];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) {
    EXPECT_THAT(order, ::testing::UnorderedElementsAre(0, 1, 2));
    EXPECT_NEAR(count, kEpochs / 6, 150);  // five standard deviations
  }
}

TEST(Uniform, ManyDraws_LieInTheHalfOpenIntervalWithTheRightMoments) {
  RandomStream random(1, 2);
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, largest = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform_f64();
    ASSERT_GE(value, 0);
    largest = std::max(largest, value);
    sum += value;
    squares += value * value;
  }
  EXPECT_LT(largest, 1);
  EXPECT_GT(largest, 0.999);
  EXPECT_NEAR(sum / kDraws, 1 / 2.0, 0.005);
  EXPECT_NEAR(squares / kDraws, 1 / 3.0, 0.005);
}

TEST(StepStream, InputsAndSteps_HaveStreamsOfTheirOwn) {
  EXPECT_EQ(step_stream(0, 1), (std::uint64_t{1} << 62) + 1);
  EXPECT_EQ(step_stream(3, 5), (std::uint64_t{1} << 62) + (std::uint64_t{3} << 40) + 5);
  EXPECT_LT(step_stream((std::int64_t{1} << 21) - 1, (std::int64_t{1} << 40) - 1),
            std::uint64_t{1} << 63);
}

TEST(FillUniform, Elements_AreTheStreamsUniformNumbers) {
  std::vector<float> values(7);
  fill_uniform(values, 3, 4);
  RandomStream random(3, 4);
  for (const float value : values) EXPECT_EQ(value, random.uniform_f32());
}

TEST(Normal, ManyDraws_HaveTheRightMoments) {
  RandomStream random(3, 4);
  constexpr int kDraws = 100000;
  double moments[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    double power = 1;
    const double value = random.normal();
    for (double& moment : moments) {
      moment += power / kDraws;
      power *= value;
    }
  }
  // Within six standard errors of the standard normal's 0, 1, 0, 3.
  EXPECT_NEAR(moments[1], 0, 0.02);
  EXPECT_NEAR(moments[2], 1, 0.03);
  EXPECT_NEAR(moments[3], 0, 0.08);
  EXPECT_NEAR(moments[4], 3, 0.20);
}

TEST(Random, ArgumentOutOfItsDomain_Throws) {
  EXPECT_THAT([] { RandomStream(0, 0).below(0); },
              throws(Category::invalid_argument, "found bound 0"));
  const std::pair<std::int64_t, std::int64_t> inputs_and_counts[] = {
      {-1, 1}, {std::int64_t{1} << 21, 1}, {0, -1}, {0, std::int64_t{1} << 40}};
  for (const auto& bad : inputs_and_counts) {
    EXPECT_THAT([&] { step_stream(bad.first, bad.second); },
                throws(Category::invalid_argument, "expected ones below 2^21 and 2^40"));
  }
  EXPECT_THAT([] { shuffled(-1, 0, 0); },
              throws(Category::invalid_argument, "found -1 entries, expected >= 0"));
  EXPECT_THAT([] { shuffled(3, 0, std::uint64_t{1} << 63); },
              throws(Category::invalid_argument, "found epoch 9223372036854775808"));
}

}  // namespace
}  // namespace mulgrad
