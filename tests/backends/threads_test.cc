#include "backends/cpu/threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"

namespace mulgrad::cpu {
namespace {

TEST(ThreadPool, AnyNumberOfParts_RunsEachOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int parts : {0, 1, 2, 7, 64}) {
      for (int round = 0; round < 50; ++round) {
        std::vector<int> runs(static_cast<std::size_t>(parts), 0);  // no atomics: run() orders them
        pool.run(parts, [&runs](int part) { ++runs[static_cast<std::size_t>(part)]; });
        EXPECT_TRUE(std::ranges::all_of(runs, [](int count) { return count == 1; }))
            << threads << " threads, " << parts << " parts";
      }
    }
  }
}

TEST(ThreadPool, TwoParts_RunAtTheSameTime) {
  ThreadPool pool(2);
  for (const bool idle_before : {false, true}) {
    // Long enough for the worker to fall asleep.
    if (idle_before) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> arrived = 0;
    // Each part waits for the other: with one thread this would never end.
    pool.run(2, [&arrived](int) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(ThreadPool, Scratch_IsAlignedAndTheThreadsOwn) {
  ThreadPool pool(3);
  ThreadPool other(2);
  std::set<const std::byte*> places;
  std::mutex mutex;
  std::atomic<int> arrived = 0;
  pool.run(3, [&](int) {
    const auto own = pool.scratch();
    EXPECT_EQ(own.size(), ThreadPool::kScratchBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own.data()) % 64, 0u);
    {
      const std::lock_guard lock(mutex);
      places.insert(own.data());
    }
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(places.size(), 3u);
  EXPECT_EQ(places.count(pool.scratch().data()), 1u);
  EXPECT_EQ(places.count(other.scratch().data()), 0u);
}

TEST(ThreadPool, NoThreads_IsInvalid) {
  try {
    ThreadPool pool(0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), Category::invalid_argument);
  }
}

}  // namespace
}  // namespace mulgrad::cpu
