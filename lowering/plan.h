// Plan: a program as a flat list of kernel calls over one preallocated arena. Made once per bound
// program; running it allocates nothing and looks nothing up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace mulgrad {

// Runs one kernel: writes the results, which it may not assume to be zeroed, from the operands.
using Kernel = std::function<void(std::span<std::byte* const> results,
                                  std::span<const std::byte* const> operands)>;

// Memory of one value. Made by a PlanBuilder and of use with that one alone.
struct Buffer {
  std::int32_t index = -1;
};

// The results of a kernel call, in order.
class CallResults {
 public:
  std::size_t size() const { return count_; }
  Buffer operator[](std::size_t i) const { return {first_ + static_cast<std::int32_t>(i)}; }

 private:
  friend class PlanBuilder;
  CallResults(std::int32_t first, std::size_t count) : first_(first), count_(count) {}
  std::int32_t first_;
  std::size_t count_;
};

// Is it a kernel of the backend, or the interpreter standing in for one?
enum class CallKind : std::uint8_t { kernel, fallback };

// A result of a kernel call.
struct KernelResult {
  std::size_t bytes = 0;
  // The operands, by index, over which the kernel may write the result; those of another size do
  // not count.
  std::vector<std::int32_t> may_overlay = {};
  // The kernel changes this value instead of making one: the result's memory holds it when the
  // kernel runs. It is no operand, and is copied first where something still reads it.
  std::optional<Buffer> changes = std::nullopt;
};

struct KernelCall {
  std::string name;  // for the printed plan: "gemm_f32 32x64x64"
  std::vector<Buffer> operands;
  Kernel kernel;
  std::vector<KernelResult> results;
  CallKind kind = CallKind::kernel;
  std::int64_t flops = 0;  // an estimate for the printed plan; 0 where there is none
};

// Memory that starts at a multiple of 64 bytes.
class AlignedBytes {
 public:
  static constexpr std::size_t kAlignment = 64;
  explicit AlignedBytes(std::size_t size);  // zeroed
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const {
      ::operator delete[](data, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_;
};

// From one memory to another of the same size.
void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to);

class Plan {
 public:
  // Runs the calls up to the checkpoint (all of them when none was set), or those behind it and
  // then the commits. Inputs are to be written or bound before, outputs hold until the next run.
  void run_to_checkpoint();
  void run_from_checkpoint();
  void run() {
    run_to_checkpoint();
    run_from_checkpoint();
  }

  // In the order in which the builder made inputs and outputs.
  std::span<std::byte> input(std::size_t index);  // not of one that is bound
  std::span<const std::byte> output(std::size_t index) const;
  // From now on the bound input is read at `data`, which costs nothing where it was there before.
  void bind(std::size_t index, const std::byte* data) {
    if (inputs_[index].bound_at != data) rebind(inputs_[index], data);
  }

  std::size_t kernels() const { return calls_.size() - fallbacks_; }
  std::size_t fallbacks() const { return fallbacks_; }
  std::size_t arena_bytes() const { return arena_.bytes().size(); }
  // The most bytes of temporary results that are needed at one time.
  std::size_t live_bytes() const { return live_bytes_; }
  // How many commits copy, because the value cannot be computed in its place.
  std::size_t commit_copies() const { return commits_.size(); }
  // The arena, which is inputs, constants and temporary results, and a line per call: the
  // floating-point operations, where known, and the bytes that it reads and writes; its kernel; its
  // operands and results as "@" and the place in the arena, or "in0" for the first bound input and
  // "ext0" for the external memory that is met first.
  std::string print() const;

 private:
  friend class PlanBuilder;
  struct Call {
    std::string name;
    Kernel kernel;
    std::size_t first_result;  // into results_
    std::size_t result_count;
    std::size_t first_operand;  // into operands_
    std::size_t operand_count;
    std::int64_t flops;
    std::int64_t bytes;
  };
  struct Input {
    std::span<std::byte> memory = {};
    const std::byte* bound_at = nullptr;
    std::vector<std::size_t> operands = {};  // of a bound input: where calls and outputs hold it
    std::vector<std::size_t> outputs = {};
  };
  struct Copy {
    std::span<const std::byte> from;
    std::span<std::byte> to;
  };

  Plan() : arena_(0) {}
  void run(std::size_t first, std::size_t last);
  void rebind(Input& input, const std::byte* data);

  AlignedBytes arena_;
  std::vector<Call> calls_;
  std::vector<std::byte*> results_;
  std::vector<const std::byte*> operands_;
  std::vector<Input> inputs_;
  std::vector<std::span<const std::byte>> outputs_;
  std::vector<Copy> commits_;
  std::size_t checkpoint_ = 0;
  std::size_t fallbacks_ = 0;
  std::size_t live_bytes_ = 0;
};

class PlanBuilder {
 public:
  // Memory in the arena that the caller writes before a run.
  Buffer input(std::size_t bytes);
  // An input in the caller's memory, which Plan::bind names before a run.
  Buffer bound_input(std::size_t bytes);
  // The caller's own memory, which must stay where it is as long as the plan.
  Buffer external(std::span<std::byte> memory);
  // Copied into the arena when the plan is finished.
  Buffer constant(Tensor value);
  // The results of a kernel call, appended to the list.
  CallResults call(KernelCall call);
  // Makes room for that many calls.
  void reserve(std::size_t calls);

  void output(Buffer value);
  // At the end of a run the external memory holds the value. It is computed there where nothing
  // reads the memory's old content any more, else copied. An output that is this very memory is to
  // be read at the checkpoint.
  void commit(Buffer value, Buffer external);
  // Run in two parts: the calls so far that `value` waits for, and everything else. No external
  // memory is written in the first part.
  void checkpoint(Buffer value);

  Plan finish();

  // A part of the arena, and the calls from the first that needs it to the last.
  struct Block {
    std::size_t bytes;
    std::int64_t first;
    std::int64_t last;
    std::size_t offset;
  };

 private:
  enum class Kind : std::uint8_t { input, bound, external, constant, temporary };
  struct Entry {
    Kind kind;
    std::size_t bytes;
    std::span<std::byte> memory = {};
    std::int64_t producer = -1;  // temporaries: index of the call
    std::int32_t result = 0;     // and which of its results
    std::int64_t last_use = -1;  // index of the last call that reads it; kForever for outputs
    std::size_t offset = 0;
    std::int32_t block = -1;  // temporaries in the arena: the block that they lie in
  };
  struct Commit {
    Buffer value;
    Buffer external;
    bool in_place = false;
  };
  static constexpr std::int64_t kForever = INT64_MAX;

  Entry& entry(Buffer buffer) { return entries_[static_cast<std::size_t>(buffer.index)]; }
  Buffer add(Entry entry);
  std::int64_t last_call() const { return std::ssize(calls_) - 1; }
  bool may_lie_over(const Entry& value, Buffer target) const;
  void place_commits();
  void copy_what_is_still_read();
  std::vector<Block> make_blocks();
  std::size_t place_temporaries(std::size_t base, std::size_t& live_bytes);

  std::vector<Entry> entries_;
  std::vector<KernelCall> calls_;
  std::vector<CallResults> results_;  // per call
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<Commit> commits_;
  std::vector<Tensor> constants_;
  std::optional<std::int64_t> checkpoint_;  // the last call of the first part; -1: it has none
};

}  // namespace mulgrad
