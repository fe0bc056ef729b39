// ThreadPool: a few threads for the parts of one kernel call. Idle workers spin for a short while,
// then sleep; running parts allocates nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace mulgrad::cpu {

class ThreadPool {
 public:
  // `threads` in all, the caller's included. Throws invalid_argument below 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // 64-byte-aligned memory of the calling thread for the time of one part or, outside of parts, of
  // one kernel call. Not kept from one to the next.
  static constexpr std::size_t kScratchBytes = 256 * 1024;
  std::span<std::byte> scratch() const;
  // Calls task(part) once for every part in 0 .. parts-1, on any thread, and returns when all are
  // done. What the parts are must not depend on the number of threads: results then cannot either.
  // One call at a time. A task must not throw.
  void run(int parts, const std::function<void(int)>& task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The pool for a number of threads as users give it: 0 stands for as many as the machine runs at
// once, at most 8. Throws invalid_argument below 0.
std::shared_ptr<ThreadPool> make_pool(int threads);

}  // namespace mulgrad::cpu
