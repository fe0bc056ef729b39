#include "autodiff/random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.h"

namespace mulgrad {
namespace {

// Multipliers and the key's Weyl increments, from the paper.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // the golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
constexpr int kRounds = 10;

constexpr std::uint64_t kFirstStep = std::uint64_t{1} << 62;
constexpr std::uint64_t kFirstShuffle = std::uint64_t{1} << 63;

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == block_.size()) {
    block_ = philox4x32_10({low(next_block_), high(next_block_), low(stream_), high(stream_)},
                           {low(seed_), high(seed_)});
    ++next_block_;
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t RandomStream::next_u64() {
  const std::uint64_t low_half = next_u32();
  return low_half | std::uint64_t{next_u32()} << 32;
}

float RandomStream::uniform_f32() { return static_cast<float>(next_u32() >> 8) * 0x1p-24F; }

double RandomStream::uniform_f64() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_f64()));  // of a number in (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * uniform_f64());
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  if (bound == 0) throw Error(Category::invalid_argument, "below: found bound 0, expected > 0");
  const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound
  std::uint64_t draw = next_u64();
  while (draw < rejected) draw = next_u64();
  return draw % bound;
}

std::uint64_t step_stream(std::int64_t input, std::int64_t count) {
  constexpr std::int64_t kInputs = std::int64_t{1} << 21;
  constexpr std::int64_t kCounts = std::int64_t{1} << 40;
  if (input < 0 || input >= kInputs || count < 0 || count >= kCounts) {
    throw Error(Category::invalid_argument, "step_stream: found input " + std::to_string(input) +
                                                " of step " + std::to_string(count) +
                                                ", expected ones below 2^21 and 2^40");
  }
  return kFirstStep + static_cast<std::uint64_t>(input * kCounts + count);
}

void fill_uniform(std::span<float> values, std::uint64_t seed, std::uint64_t stream) {
  RandomStream random(seed, stream);
  for (float& value : values) value = random.uniform_f32();
}

std::vector<std::int64_t> shuffled(std::int64_t n, std::uint64_t seed, std::uint64_t epoch) {
  if (n < 0) {
    throw Error(Category::invalid_argument,
                "shuffled: found " + std::to_string(n) + " entries, expected >= 0");
  }
  if (epoch >= kFirstShuffle) {
    throw Error(Category::invalid_argument,
                "shuffled: found epoch " + std::to_string(epoch) + ", expected one below 2^63");
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, kFirstShuffle + epoch);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

}  // namespace mulgrad
