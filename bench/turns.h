// Timing side by side: the contenders run in turns of a few milliseconds, each keeps its best turn,
// so that what disturbs the machine disturbs all of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace mulgrad::bench {

// One way to do the thing that is timed.
struct Contender {
  std::function<double(int times)> run;                   // what it returns is for the caller
  double best = std::numeric_limits<double>::infinity();  // us, once
};

// Until each had about `seconds`.
inline void take_turns(std::span<Contender> contenders, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kTurn = 4e-3;
  constexpr std::size_t kFewest = 4;
  const auto seconds_of = [](const Contender& contender, int times) {
    const auto start = Clock::now();
    contender.run(times);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<int> times;
  for (const Contender& contender : contenders) {
    const double once = std::min(seconds_of(contender, 1), seconds_of(contender, 1));
    times.push_back(std::clamp(static_cast<int>(kTurn / once), 1, 100'000));
  }
  const auto end = Clock::now() +
                   std::chrono::duration<double>(seconds * static_cast<double>(contenders.size()));
  for (std::size_t turn = 0; turn < kFewest || Clock::now() < end; ++turn) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      // Another one begins each time, so that none always follows the same.
      const std::size_t which = (turn + i) % contenders.size();
      Contender& contender = contenders[which];
      contender.run(1);  // what the others left in the caches is not its cost
      contender.best =
          std::min(contender.best, seconds_of(contender, times[which]) / times[which] * 1e6);
    }
  }
}

}  // namespace mulgrad::bench
