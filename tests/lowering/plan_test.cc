#include "lowering/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace mulgrad {
namespace {

using testing::HasSubstr;

float read(std::span<const std::byte> bytes) {
  float value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}
void write(std::span<std::byte> bytes, float value) {
  std::memcpy(bytes.data(), &value, sizeof(value));
}

// The sum of its operands, which are one float each.
KernelCall sum_call(std::vector<Buffer> operands, InPlace in_place = InPlace::no) {
  return {"sum", std::move(operands),
          [](std::byte* result, std::span<const std::byte* const> values) {
            float total = 0;
            for (const std::byte* value : values) total += read({value, sizeof(float)});
            write({result, sizeof(float)}, total);
          },
          in_place};
}

Buffer constant(PlanBuilder& builder, float value) {
  return builder.constant(Tensor::scalar<float>(value));
}

struct Cell {
  float value = 0;
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(&value, 1)); }
};

TEST(Plan, Calls_RunInOrder) {
  PlanBuilder builder;
  const Buffer x = builder.input(4);
  const Buffer a = builder.call(sum_call({x, constant(builder, 2)}), 4);
  const Buffer b = builder.call(sum_call({a, a, x}), 4);
  builder.output(b);
  builder.output(x);
  Plan plan = builder.finish();
  for (const float value : {1.0F, 5.0F}) {
    write(plan.input(0), value);
    plan.run();
    EXPECT_EQ(read(plan.output(0)), 3 * value + 4);
    EXPECT_EQ(read(plan.output(1)), value);
  }
  EXPECT_EQ(plan.kernels(), 2u);
  EXPECT_EQ(plan.fallbacks(), 0u);
  EXPECT_THAT(plan.to_string(), HasSubstr("plan: 2 kernels, 0 fallbacks"));
  EXPECT_THAT(plan.to_string(), HasSubstr("0 sum (@0, @64) -> @128"));
}

TEST(Plan, DeadValues_GiveTheirMemoryBack) {
  PlanBuilder builder;
  Buffer value = builder.input(4);
  for (int i = 0; i < 1000; ++i) {
    value = builder.call(sum_call({value, constant(builder, 1)}), 4);
  }
  builder.output(value);
  Plan plan = builder.finish();
  EXPECT_EQ(plan.live_bytes(), 2 * AlignedBytes::kAlignment);
  plan.run();
  EXPECT_EQ(read(plan.output(0)), 1000);
}

TEST(Plan, Memory_IsAlignedAndLiveValuesAreApart) {
  PlanBuilder builder;
  const Buffer x = builder.input(4);
  std::vector<Buffer> values;
  for (int i = 0; i < 8; ++i) {
    values.push_back(builder.call(sum_call({x, constant(builder, static_cast<float>(i))}), 4));
  }
  const Buffer dead = builder.call(sum_call({x}), 4);  // nothing reads it
  static_cast<void>(dead);
  const Buffer all = builder.call(sum_call(values), 4);
  builder.output(all);
  for (const Buffer value : values) builder.output(value);
  Plan plan = builder.finish();
  plan.run();
  EXPECT_EQ(read(plan.output(0)), 28);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(read(plan.output(1 + i)), static_cast<float>(i));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(plan.output(1 + i).data()) % 64, 0u);
  }
}

TEST(Plan, InPlaceKernel_TakesOverADyingOperand) {
  const auto live = [](InPlace in_place) {
    PlanBuilder builder;
    Buffer value = builder.input(4);
    for (int i = 0; i < 3; ++i) value = builder.call(sum_call({value, value}, in_place), 4);
    builder.output(value);
    Plan plan = builder.finish();
    write(plan.input(0), 1);
    plan.run();
    EXPECT_EQ(read(plan.input(0)), 1) << "an input is no temporary";
    EXPECT_EQ(read(plan.output(0)), 8);
    return plan.live_bytes();
  };
  EXPECT_EQ(live(InPlace::yes), 64u);
  EXPECT_EQ(live(InPlace::no), 128u);
}

TEST(PlanCommit, LastReaderInPlace_WritesTheParameterItself) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  const Buffer loss = builder.call(sum_call({p, p}), 4);
  builder.output(loss);
  builder.checkpoint(loss);
  builder.commit(builder.call(sum_call({p, constant(builder, 1)}, InPlace::yes), 4), p);
  Plan plan = builder.finish();
  EXPECT_EQ(plan.commit_copies(), 0u);
  plan.run_to_checkpoint();
  EXPECT_EQ(read(plan.output(0)), 20);
  EXPECT_EQ(parameter.value, 10);
  plan.run_from_checkpoint();
  EXPECT_EQ(parameter.value, 11);
  EXPECT_THAT(plan.to_string(), HasSubstr("checkpoint"));
}

TEST(PlanCommit, ValueThatOthersStillRead_IsCopied) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  const Buffer next = builder.call(sum_call({p, constant(builder, 1)}, InPlace::yes), 4);
  builder.output(builder.call(sum_call({p, next}), 4));  // the old content
  builder.commit(next, p);
  Plan plan = builder.finish();
  EXPECT_EQ(plan.commit_copies(), 1u);
  plan.run();
  EXPECT_EQ(read(plan.output(0)), 21);
  EXPECT_EQ(parameter.value, 11);
}

TEST(PlanCommit, KernelThatIsNotInPlace_IsCopied) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  builder.commit(builder.call(sum_call({p, p}), 4), p);
  Plan plan = builder.finish();
  EXPECT_EQ(plan.commit_copies(), 1u);
  plan.run();
  EXPECT_EQ(parameter.value, 20);
}

TEST(PlanCommit, ValueBeforeTheCheckpoint_IsCopiedAfterIt) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  const Buffer next = builder.call(sum_call({p, p}, InPlace::yes), 4);
  builder.checkpoint(next);
  builder.commit(next, p);
  Plan plan = builder.finish();
  plan.run_to_checkpoint();
  EXPECT_EQ(parameter.value, 10);
  plan.run_from_checkpoint();
  EXPECT_EQ(parameter.value, 20);
}

TEST(PlanCommit, CheckpointOnAnInput_ComesBeforeEveryCall) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  builder.checkpoint(p);
  builder.commit(builder.call(sum_call({p, p}, InPlace::yes), 4), p);
  Plan plan = builder.finish();
  plan.run_to_checkpoint();
  EXPECT_EQ(parameter.value, 10);
  plan.run_from_checkpoint();
  EXPECT_EQ(parameter.value, 20);
}

TEST(PlanCommit, SwappedParameters_AreSwapped) {
  Cell a{1}, b{2};
  PlanBuilder builder;
  const Buffer p = builder.external(a.bytes());
  const Buffer q = builder.external(b.bytes());
  builder.commit(p, q);
  builder.commit(q, p);
  Plan plan = builder.finish();
  plan.run();
  EXPECT_EQ(a.value, 2);
  EXPECT_EQ(b.value, 1);
}

TEST(PlanCommit, OneValueForTwoParameters_ReachesBoth) {
  Cell a{1}, b{2};
  PlanBuilder builder;
  const Buffer p = builder.external(a.bytes());
  const Buffer q = builder.external(b.bytes());
  const Buffer sum = builder.call(sum_call({p, q}, InPlace::yes), 4);
  builder.commit(sum, p);
  builder.commit(sum, q);
  Plan plan = builder.finish();
  plan.run();
  EXPECT_EQ(a.value, 3);
  EXPECT_EQ(b.value, 3);
}

TEST(Plan, Fallbacks_AreCounted) {
  PlanBuilder builder;
  KernelCall call = sum_call({builder.input(4)});
  call.kind = CallKind::fallback;
  builder.output(builder.call(std::move(call), 4));
  const Plan plan = builder.finish();
  EXPECT_EQ(plan.fallbacks(), 1u);
  EXPECT_EQ(plan.kernels(), 0u);
}

}  // namespace
}  // namespace mulgrad
