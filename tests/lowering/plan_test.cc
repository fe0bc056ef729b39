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

enum class InPlace : std::uint8_t { no, yes };

// Each of its results is the sum of its operands, which are one float each.
KernelCall sum_call(std::vector<Buffer> operands, InPlace in_place = InPlace::no,
                    std::size_t results = 1) {
  KernelResult result{sizeof(float)};
  for (std::size_t i = 0; in_place == InPlace::yes && i < operands.size(); ++i) {
    result.may_overlay.push_back(static_cast<std::int32_t>(i));
  }
  return {"sum", std::move(operands),
          [](std::span<std::byte* const> made, std::span<const std::byte* const> values) {
            float total = 0;
            for (const std::byte* value : values) total += read({value, sizeof(float)});
            for (std::byte* one : made) write({one, sizeof(float)}, total);
          },
          std::vector(results, result)};
}
Buffer sum(PlanBuilder& builder, std::vector<Buffer> operands, InPlace in_place = InPlace::no) {
  return builder.call(sum_call(std::move(operands), in_place))[0];
}

// What is changed plus the operand.
Buffer add_to(PlanBuilder& builder, Buffer changed, Buffer operand) {
  return builder.call(
      {"add_to",
       {operand},
       [](std::span<std::byte* const> results, std::span<const std::byte* const> operands) {
         write({results[0], sizeof(float)},
               read({results[0], sizeof(float)}) + read({operands[0], sizeof(float)}));
       },
       {{sizeof(float), {}, changed}}})[0];
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
  const Buffer a = sum(builder, {x, constant(builder, 2)});
  const Buffer b = sum(builder, {a, a, x});
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
  EXPECT_THAT(plan.print(), HasSubstr("plan: 2 kernels, 0 fallbacks"));
  EXPECT_THAT(plan.print(), HasSubstr("  0    12 B  sum (@0, @64) -> @128\n"));
}

TEST(Plan, BoundInputs_AreReadWhereTheCallerHasThem) {
  Cell first{1}, second{2}, parameter{10};
  PlanBuilder builder;
  const Buffer x = builder.bound_input(4);
  const Buffer y = builder.input(4);
  const Buffer p = builder.external(parameter.bytes());
  builder.output(sum(builder, {x, y, x}));
  builder.output(x);
  builder.commit(x, p);
  Plan plan = builder.finish();
  for (Cell* cell : {&first, &second, &first}) {
    plan.bind(0, cell->bytes().data());
    write(plan.input(1), 5);
    plan.run();
    EXPECT_EQ(read(plan.output(0)), 5 + 2 * cell->value);
    EXPECT_EQ(read(plan.output(1)), cell->value);
    EXPECT_EQ(parameter.value, cell->value);
  }
  EXPECT_THAT(plan.print(), HasSubstr("16 B  sum (in0, @0, in0) -> @64"));
}

TEST(Plan, DeadValues_GiveTheirMemoryBack) {
  PlanBuilder builder;
  Buffer value = builder.input(4);
  for (int i = 0; i < 1000; ++i) {
    value = sum(builder, {value, constant(builder, 1)});
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
    values.push_back(sum(builder, {x, constant(builder, static_cast<float>(i))}));
  }
  const Buffer dead = sum(builder, {x});  // nothing reads it
  static_cast<void>(dead);
  const Buffer all = sum(builder, values);
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
    for (int i = 0; i < 3; ++i) value = sum(builder, {value, value}, in_place);
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
  const Buffer loss = sum(builder, {p, p});
  builder.output(loss);
  builder.checkpoint(loss);
  builder.commit(sum(builder, {p, constant(builder, 1)}, InPlace::yes), p);
  Plan plan = builder.finish();
  EXPECT_EQ(plan.commit_copies(), 0u);
  plan.run_to_checkpoint();
  EXPECT_EQ(read(plan.output(0)), 20);
  EXPECT_EQ(parameter.value, 10);
  plan.run_from_checkpoint();
  EXPECT_EQ(parameter.value, 11);
  EXPECT_THAT(plan.print(), HasSubstr("checkpoint"));
}

TEST(PlanCommit, ValueThatOthersStillRead_IsCopied) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  const Buffer next = sum(builder, {p, constant(builder, 1)}, InPlace::yes);
  builder.output(sum(builder, {p, next}));  // the old content
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
  builder.commit(sum(builder, {p, p}), p);
  Plan plan = builder.finish();
  EXPECT_EQ(plan.commit_copies(), 1u);
  plan.run();
  EXPECT_EQ(parameter.value, 20);
}

TEST(PlanCommit, ValueBeforeTheCheckpoint_IsCopiedAfterIt) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  const Buffer next = sum(builder, {p, p}, InPlace::yes);
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
  builder.commit(sum(builder, {p, p}, InPlace::yes), p);
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
  const Buffer both = sum(builder, {p, q}, InPlace::yes);
  builder.commit(both, p);
  builder.commit(both, q);
  Plan plan = builder.finish();
  plan.run();
  EXPECT_EQ(a.value, 3);
  EXPECT_EQ(b.value, 3);
}

TEST(Plan, SeveralResults_AreApartAndTakeOverDifferentOperands) {
  PlanBuilder builder;
  const Buffer x = builder.input(4);
  const Buffer a = sum(builder, {x, x});
  const Buffer b = sum(builder, {x, x, x});
  const CallResults both = builder.call(sum_call({a, b, a}, InPlace::yes, 2));
  const Buffer unused = builder.call(sum_call({x}, InPlace::no, 2))[1];
  static_cast<void>(unused);
  builder.output(sum(builder, {both[0], both[1]}));
  builder.output(both[1]);
  Plan plan = builder.finish();
  write(plan.input(0), 1);
  plan.run();
  EXPECT_EQ(read(plan.output(0)), 14);
  EXPECT_EQ(read(plan.output(1)), 7);
  EXPECT_EQ(plan.live_bytes(), 4 * AlignedBytes::kAlignment);
}

TEST(PlanChanges, LastUse_IsChangedWhereItLies) {
  PlanBuilder builder;
  const Buffer x = builder.input(4);
  const Buffer a = sum(builder, {x, x});
  builder.output(add_to(builder, a, x));
  Plan plan = builder.finish();
  write(plan.input(0), 2);
  plan.run();
  EXPECT_EQ(read(plan.output(0)), 6);
  EXPECT_EQ(plan.live_bytes(), AlignedBytes::kAlignment);
}

TEST(PlanChanges, ValueThatIsStillRead_IsCopied) {
  PlanBuilder builder;
  const Buffer x = builder.input(4);
  const Buffer a = sum(builder, {x, x});
  const Buffer changed = add_to(builder, a, x);
  const Buffer itself = add_to(builder, x, x);
  const Buffer doubled = add_to(builder, a, a);
  builder.output(sum(builder, {changed, itself, doubled}));
  builder.output(x);
  Plan plan = builder.finish();
  for (int run = 0; run < 2; ++run) {
    write(plan.input(0), 2);
    plan.run();
    EXPECT_EQ(read(plan.output(0)), 6 + 4 + 8);
    EXPECT_EQ(read(plan.output(1)), 2);
  }
}

TEST(PlanChanges, CommittedParameter_IsChangedInPlaceBehindItsReaders) {
  for (const bool read_later : {false, true}) {
    Cell parameter{10};
    PlanBuilder builder;
    const Buffer p = builder.external(parameter.bytes());
    const Buffer loss = sum(builder, {p, p});
    builder.output(loss);
    builder.checkpoint(loss);
    const Buffer next = add_to(builder, p, constant(builder, 1));
    if (read_later) builder.output(sum(builder, {p}));
    builder.commit(next, p);
    Plan plan = builder.finish();
    EXPECT_EQ(plan.commit_copies(), read_later ? 1u : 0u);
    for (const float old : {10.0F, 11.0F}) {
      plan.run_to_checkpoint();
      EXPECT_EQ(parameter.value, old);
      plan.run_from_checkpoint();
      EXPECT_EQ(parameter.value, old + 1);
      if (read_later) {
        EXPECT_EQ(read(plan.output(1)), old);
      }
    }
  }
}

TEST(PlanChanges, BeforeTheCheckpoint_AreMadeOnACopy) {
  Cell parameter{10};
  PlanBuilder builder;
  const Buffer p = builder.external(parameter.bytes());
  const Buffer next = add_to(builder, p, constant(builder, 1));
  builder.checkpoint(next);
  builder.commit(next, p);
  Plan plan = builder.finish();
  plan.run_to_checkpoint();
  EXPECT_EQ(parameter.value, 10);
  plan.run_from_checkpoint();
  EXPECT_EQ(parameter.value, 11);
}

TEST(Plan, Fallbacks_AreCounted) {
  PlanBuilder builder;
  KernelCall call = sum_call({builder.input(4)});
  call.kind = CallKind::fallback;
  builder.output(builder.call(std::move(call))[0]);
  const Plan plan = builder.finish();
  EXPECT_EQ(plan.fallbacks(), 1u);
  EXPECT_EQ(plan.kernels(), 0u);
}

}  // namespace
}  // namespace mulgrad
