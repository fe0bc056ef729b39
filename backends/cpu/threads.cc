#include "backends/cpu/threads.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/error.h"

namespace mulgrad::cpu {
namespace {

// About 100 microseconds: longer than what lies between two large products of a step.
constexpr int kIdleSpins = 2000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Where there are more threads than cores, the one that is waited for needs the core.
void spin(int round) {
  if (round % 64 == 63) {
    std::this_thread::yield();
  } else {
    pause();
  }
}

// Not zeroed: what no part uses then takes no memory.
struct FreeScratch {
  void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{64}); }
};
using Scratch = std::unique_ptr<std::byte[], FreeScratch>;
Scratch make_scratch() {
  return Scratch(new (std::align_val_t{64}) std::byte[ThreadPool::kScratchBytes]);
}

// A call's number in the upper half and its parts that nobody has taken in the lower. A part is
// taken by counting down, and a call ends only when all taken parts are done; so whoever has taken
// one may read that call's task, and who comes late finds nothing to take.
std::uint64_t ticket_of(std::uint64_t call, int parts) {
  return call << 32 | static_cast<std::uint32_t>(parts);
}
int parts_left(std::uint64_t ticket) { return static_cast<int>(ticket & 0xFFFFFFFF); }

}  // namespace

struct ThreadPool::Impl {
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  // Takes and runs parts until none is left.
  void work() {
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    while (parts_left(seen) > 0) {
      if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      (*task)(parts - parts_left(seen));
      done.fetch_add(1, std::memory_order_release);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  bool has_work() const { return parts_left(ticket.load()) > 0; }

  void serve(std::size_t slot);

  void sleep() {
    std::unique_lock lock(mutex);
    // The caller publishes the parts, then looks for sleepers; here it is the other way round, so
    // one of the two notices the other.
    ++sleepers;
    wake.wait(lock, [this] { return stop || has_work(); });
    --sleepers;
  }

  std::atomic<std::uint64_t> ticket = 0;
  std::atomic<int> done = 0;
  std::atomic<int> sleepers = 0;
  std::atomic<bool> stop = false;
  const std::function<void(int)>* task = nullptr;
  int parts = 0;
  std::uint64_t calls = 0;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Scratch> scratch;  // per thread, the caller's first
  std::vector<std::thread> workers;
};

namespace {

// The pool that the calling thread works for, if any, and its place there.
struct Seat {
  const void* pool = nullptr;
  std::size_t slot = 0;
};
thread_local Seat seat;

}  // namespace

void ThreadPool::Impl::serve(std::size_t slot) {
  seat = {this, slot};
  while (!stop.load(std::memory_order_relaxed)) {
    for (int round = 0; round < kIdleSpins && !has_work() && !stop; ++round) spin(round);
    if (!has_work()) sleep();
    work();
  }
}

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  if (threads < 1) {
    throw Error(Category::invalid_argument,
                "found " + std::to_string(threads) + " threads, expected at least 1");
  }
  const auto count = static_cast<std::size_t>(threads);
  for (std::size_t i = 0; i < count; ++i) impl_->scratch.push_back(make_scratch());
  for (std::size_t i = 1; i < count; ++i) {
    impl_->workers.emplace_back([impl = impl_.get(), i] { impl->serve(i); });
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return static_cast<int>(impl_->scratch.size()); }

std::span<std::byte> ThreadPool::scratch() const {
  return {impl_->scratch[seat.pool == impl_.get() ? seat.slot : 0].get(), kScratchBytes};
}

void ThreadPool::run(int parts, const std::function<void(int)>& task) {
  Impl& pool = *impl_;
  if (pool.workers.empty() || parts < 2) {
    for (int part = 0; part < parts; ++part) task(part);
    return;
  }
  pool.task = &task;
  pool.parts = parts;
  pool.done.store(0, std::memory_order_relaxed);
  pool.ticket.store(ticket_of(++pool.calls, parts));
  if (pool.sleepers.load() > 0) {
    { const std::lock_guard lock(pool.mutex); }  // until a sleeper to be really waits
    pool.wake.notify_all();
  }
  pool.work();
  for (int round = 0; pool.done.load(std::memory_order_acquire) < parts; ++round) spin(round);
}

std::shared_ptr<ThreadPool> make_pool(int threads) {
  constexpr unsigned kMost = 8;
  if (threads == 0) {
    threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
  }
  return std::make_shared<ThreadPool>(threads);
}

}  // namespace mulgrad::cpu
