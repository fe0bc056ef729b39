// Timing side by side: the contenders run in turns of a few milliseconds, each keeps its best turn,
// so that what disturbs the machine disturbs all of them.
#pragma once

#include <time.h>

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

// Seconds from some point in time on.
inline double wall_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds that this thread ran: what other programs take on a busy machine does not count, but
// neither do other threads of ours.
inline double thread_clock() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Until each had about `seconds`; timed by `now`.
inline void take_turns(std::span<Contender> contenders, double seconds,
                       double (*now)() = wall_clock) {
  constexpr double kTurn = 4e-3;
  constexpr std::size_t kFewest = 4;
  const auto seconds_of = [now](const Contender& contender, int times) {
    const double start = now();
    contender.run(times);
    return now() - start;
  };
  std::vector<int> times;
  for (const Contender& contender : contenders) {
    const double once = std::min(seconds_of(contender, 1), seconds_of(contender, 1));
    times.push_back(std::clamp(static_cast<int>(kTurn / once), 1, 100'000));
  }
  const double end = now() + seconds * static_cast<double>(contenders.size());
  for (std::size_t turn = 0; turn < kFewest || now() < end; ++turn) {
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
