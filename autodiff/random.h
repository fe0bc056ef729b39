// Random numbers that a seed pins: the same seed gives the same words, uniforms and shuffles on
// every machine and in every version.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mulgrad {

// Philox4x32-10: the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011), section 3.3, with ten rounds.
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key);

// One of 2^64 independent streams of a seed. Word 4*i + j of a stream is word j of
// philox4x32_10({i low, i high, stream low, stream high}, {seed low, seed high}). Streams below
// 2^62 are the callers' (parameter i is initialised from stream i); the steps of training use those
// from 2^62 on and shuffles those from 2^63 on.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  std::uint32_t next_u32();
  std::uint64_t next_u64();  // two words, the low half first

  // In [0, 1): the top 24 bits of one word over 2^24, and the top 53 bits of next_u64() over 2^53.
  float uniform_f32();
  double uniform_f64();

  // Standard normal by Box and Muller (1958): sqrt(-2 ln(1 - u)) cos(2 pi v) with u, then v, from
  // uniform_f64(). Exact up to what the C library's log and cos round differently.
  double normal();

  // In [0, bound) without bias: the remainder of next_u64(), where draws below 2^64 mod bound are
  // thrown away. Throws invalid_argument for bound 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t next_block_ = 0;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = 4;  // words of block_ that are handed out
};

// The stream for random input `input` of training step `count`: 2^62 + input * 2^40 + count. Throws
// invalid_argument unless both are >= 0, input < 2^21 and count < 2^40.
std::uint64_t step_stream(std::int64_t input, std::int64_t count);

// The first uniform_f32() of a stream, one for each element.
void fill_uniform(std::span<float> values, std::uint64_t seed, std::uint64_t stream);

// A permutation of 0 .. n-1: Fisher and Yates from the back (for i = n-1 .. 1 swap entry i with
// entry below(i + 1)) on stream 2^63 + epoch of the seed. Throws invalid_argument for n < 0 and for
// an epoch of 2^63 or more.
std::vector<std::int64_t> shuffled(std::int64_t n, std::uint64_t seed, std::uint64_t epoch);

}  // namespace mulgrad
