// How often memory is taken from the system, in this library or in BLAS: by no step but the first
// of a size, and a few times per node where a plan is made.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>

#include "autodiff/losses.h"
#include "autodiff/tape.h"
#include "backends/cpu/session.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void note() {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
}

}  // namespace

#ifdef MULGRAD_SANITIZED
// The sanitizers have functions of these names themselves, and tell of every call.
#include <sanitizer/allocator_interface.h>

namespace {

void watch() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { note(); }, [](const volatile void*) {});
  ASSERT_NE(installed, 0);
}

}  // namespace
#else
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  note();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  note();
  return __libc_calloc(count, size);
}
void* realloc(void* data, std::size_t size) {
  note();
  return __libc_realloc(data, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
  note();
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
}

namespace {

void watch() {}

}  // namespace
#endif

namespace mulgrad {
namespace {

TrainingSession session_of(std::shared_ptr<const Optimizer> optimizer, int threads) {
  const Dim batch = Dim::symbol("B");
  TrainingSpec spec;
  spec.inputs = {{"x", {DType::f32, {batch, 300}}},
                 {"w1", {DType::f32, {300, 256}}},
                 {"b1", {DType::f32, {1, 256}}},
                 {"w2", {DType::f32, {256, 10}}},
                 {"y", {DType::i32, {batch}}}};
  spec.parameters = {"w1", "b1", "w2"};
  spec.loss = [](Tape&, const NamedVars& in) {
    const Var hidden = tanh(matmul(in["x"], in["w1"]) + in["b1"]);
    return softmax_cross_entropy(matmul(hidden, in["w2"]), in["y"]);
  };
  std::vector<Tensor> parameters;
  for (const std::size_t i : {1u, 2u, 3u}) {
    parameters.emplace_back(DType::f32, spec.inputs[i].type.shape.sizes());
  }
  const Target target = Target::cpu();
  return {with_optimizer(std::move(spec), std::move(optimizer)),
          target,
          Passes::for_target(target),
          std::move(parameters),
          {.threads = threads}};
}

TEST(Allocation, CounterSeesWhatIsTaken) {
  watch();
  allocations = 0;
  counting = true;
  std::vector<char> taken(100);
  counting = false;
  EXPECT_GE(allocations.load(), 1);
  EXPECT_EQ(taken[0], 0);
}

TEST(Allocation, SecondToHundredthStep_TakeNoMemory) {
  watch();
  const std::shared_ptr<const Optimizer> optimizers[] = {
      std::make_shared<SGD>(SGD::Settings{.rate = 0.1}),
      std::make_shared<AdamW>(AdamW::Settings{})};
  for (const auto& optimizer : optimizers) {
    for (const int threads : {1, 2}) {
      TrainingSession session = session_of(optimizer, threads);
      // A batch whose products are cut, and one whose are not.
      for (const std::int64_t rows : {256, 3}) {
        const std::vector<Tensor> data{Tensor::filled(Literal::of(0.5F), {rows, 300}),
                                       Tensor(DType::i32, {rows})};
        session.step(data);
        allocations = 0;
        counting = true;
        for (int i = 2; i <= (rows == 3 ? 100 : 10); ++i) session.step(data);
        counting = false;
        EXPECT_EQ(allocations.load(), 0) << threads << " threads, " << rows << " rows";
      }
    }
  }
}

// Memory is most of what planning costs: a vector more per node shows here before it does in time.
TEST(Allocation, PlanningALongChain_TakesMemoryFewTimesPerNode) {
  watch();
  constexpr int kLayers = 1000;
  Tape tape;
  const Var x = tape.input("x", {DType::f32, {4, 4}});
  Var y = x;
  for (int i = 0; i < kLayers; ++i) y = tanh(transpose(tanh(matmul(y, x)) * 0.5) - x) / 16.0 + x;
  tape.output("y", y);
  const Program program = tape.finish();
  allocations = 0;
  counting = true;
  const CpuProgram planned(program);
  counting = false;
  EXPECT_EQ(std::ssize(program.nodes()), 8 * kLayers);
  EXPECT_LE(allocations.load(), 15 * 8 * kLayers);
}

}  // namespace
}  // namespace mulgrad
