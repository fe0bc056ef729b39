#include "backends/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/idx.h"
#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

Dataset numbered(std::int64_t rows) {
  Tensor inputs(DType::f32, {rows, 2});
  Tensor labels(DType::i32, {rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    inputs.data<float>()[2 * at] = static_cast<float>(row);
    inputs.data<float>()[2 * at + 1] = static_cast<float>(-row);
    labels.data<std::int32_t>()[at] = static_cast<std::int32_t>(row);
  }
  return make_dataset(std::move(inputs), std::move(labels));
}

TEST(Dataset, Split_IsAPartitionThatKeepsRowsTogetherAndFollowsTheSeed) {
  const Dataset data = numbered(11);
  const auto [first, held_out] = data.split(0.2, 7);
  EXPECT_EQ(first.rows(), 9);
  EXPECT_EQ(held_out.rows(), 2);
  std::vector<std::int64_t> seen;
  for (const Dataset& part : {first, held_out}) {
    for (std::int64_t row = 0; row < part.rows(); ++row) {
      const std::int64_t label = part.targets.element(row).as_int();
      EXPECT_EQ(part.inputs.element(2 * row).as_double(), label);
      EXPECT_EQ(part.inputs.element(2 * row + 1).as_double(), -label);
      seen.push_back(label);
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_EQ(data.split(0.2, 7).second.targets, held_out.targets);
  EXPECT_NE(data.split(0.2, 8).first.targets, first.targets);
  EXPECT_EQ(error_of([&] { data.split(1.5, 0); }).category(), Category::invalid_argument);
}

TEST(Dataset, TakeRows_CopiesRowsInTheGivenOrder) {
  const Tensor rows = Tensor::of<std::int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(take_rows(rows, std::vector<std::int64_t>{2, 0}),
            Tensor::of<std::int32_t>({2, 2}, {5, 6, 1, 2}));
  EXPECT_EQ(error_of([&] { take_rows(rows, std::vector<std::int64_t>{3}); }).category(),
            Category::invalid_argument);
}

TEST(Dataset, MismatchedRowsOrDtypes_AreErrors) {
  EXPECT_EQ(error_of([] {
              make_dataset(Tensor(DType::f32, {3, 2}), Tensor(DType::i32, {4}));
            }).category(),
            Category::shape_mismatch);
  EXPECT_EQ(error_of([] {
              make_dataset(Tensor(DType::f32, {3, 2}), Tensor(DType::f64, {3, 1}));
            }).category(),
            Category::dtype_mismatch);
  EXPECT_EQ(error_of([] {
              make_dataset(Tensor(DType::i64, {3, 2}), Tensor(DType::i32, {3}));
            }).category(),
            Category::dtype_mismatch);
  EXPECT_EQ(error_of([] {
              make_dataset(Tensor(DType::f32, {3, 2}), Tensor(DType::i1, {3}));
            }).category(),
            Category::dtype_mismatch);
  EXPECT_EQ(
      error_of([] { make_dataset(Tensor(DType::f32, {}), Tensor(DType::i32, {3})); }).category(),
      Category::shape_mismatch);
}

TEST(Dataset, SequencesOfIds_HaveALabelPerPlace) {
  const Dataset data = make_dataset(Tensor::of<std::int32_t>({2, 2}, {1, 2, 3, 4}),
                                    Tensor::of<std::int32_t>({2, 2}, {2, 3, 4, 5}));
  const std::int64_t second = 1;
  const Dataset taken = data.take({&second, 1});
  EXPECT_EQ(taken.inputs, Tensor::of<std::int32_t>({1, 2}, {3, 4}));
  EXPECT_EQ(taken.targets, Tensor::of<std::int32_t>({1, 2}, {4, 5}));
}

TEST(Dataset, RankZero_IsAShapeMismatch) {
  const Dataset data{Tensor::scalar(1.0F), Tensor::scalar(std::int32_t{1})};
  const std::int64_t first = 0;
  EXPECT_EQ(error_of([&] { data.rows(); }).category(), Category::shape_mismatch);
  EXPECT_EQ(error_of([&] { data.take({&first, 1}); }).category(), Category::shape_mismatch);
  EXPECT_EQ(error_of([&] { data.split(0.5, 0); }).category(), Category::shape_mismatch);
}

TEST(Dataset, HeaderThatDoesNotFitTheValues_IsAShapeMismatch) {
  for (const Tensor& values : {Tensor(DType::f32, {3}), Tensor(DType::f32, {3, 1})}) {
    EXPECT_EQ(error_of([&] {
                classification_from_csv({{"a", "label"}, values}, "label", 2);
              }).category(),
              Category::shape_mismatch);
  }
}

TEST(Dataset, ClassificationFromCsv_SeparatesTheLabelColumnAndScales) {
  const Csv csv = read_csv("a,label,b\n2,1,4\n6,0,8\n", DType::f32, "t.csv");
  const Dataset data = classification_from_csv(csv, "label", 2, 0.5);
  EXPECT_EQ(data.inputs, Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(data.targets, Tensor::of<std::int32_t>({2}, {1, 0}));
}

TEST(Dataset, ClassificationFromCsv_RefusesBadLabels) {
  for (const char* label : {"2", "-1", "0.5"}) {
    const Csv csv = read_csv("a,label\n2,1\n6," + std::string(label) + "\n", DType::f32, "t.csv");
    const Error error = error_of([&] { classification_from_csv(csv, "label", 2); });
    EXPECT_EQ(error.category(), Category::invalid_data);
    EXPECT_THAT(error.what(), HasSubstr("row 1"));
    EXPECT_THAT(error.what(), HasSubstr("[0, 2)"));
  }
  const Csv csv = read_csv("a,b\n2,1\n", DType::f32, "t.csv");
  EXPECT_THAT(error_of([&] { classification_from_csv(csv, "label", 2); }).what(),
              HasSubstr("no column named \"label\""));
}

TEST(Accuracy, CountsTheFirstLargestEntry) {
  const Tensor scores = Tensor::of<float>({3, 2}, {1, 2, 5, 5, 0, -1});
  EXPECT_DOUBLE_EQ(accuracy(scores, Tensor::of<std::int32_t>({3}, {1, 0, 1})), 2.0 / 3);
  EXPECT_EQ(error_of([&] { accuracy(scores, Tensor(DType::i32, {2})); }).category(),
            Category::shape_mismatch);
  EXPECT_EQ(error_of([&] {
              accuracy(Tensor(DType::f32, {2, 0}), Tensor(DType::i32, {2}));
            }).category(),
            Category::shape_mismatch);
}

TEST(Accuracy, ScoresOfSequences_CountEveryPlace) {
  const Tensor scores = Tensor::of<float>({2, 2, 2}, {1, 2, 5, 5, 0, -1, 3, 4});
  EXPECT_DOUBLE_EQ(accuracy(scores, Tensor::of<std::int32_t>({2, 2}, {1, 0, 1, 1})), 3.0 / 4);
  EXPECT_EQ(error_of([&] { accuracy(scores, Tensor(DType::i32, {4})); }).category(),
            Category::shape_mismatch);
}

TEST(Accuracy, RowWithANaN_IsNeverRight) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor scores = Tensor::of<float>({3, 2}, {nan, nan, 1, nan, 1, 0});
  EXPECT_DOUBLE_EQ(accuracy(scores, Tensor(DType::i32, {3})), 1.0 / 3);
}

TEST(Accuracy, NoRows_IsNaN) {
  EXPECT_TRUE(std::isnan(accuracy(Tensor(DType::f32, {0, 3}), Tensor(DType::i32, {0}))));
}

TEST(Dataset, ImagesAndLabelsOfIdxFiles_AreScaledFloatsAndI32) {
  const Tensor images = Tensor::of<std::uint8_t>({2, 1, 2}, {0, 255, 51, 102});
  const Tensor labels = Tensor::of<std::uint8_t>({2}, {9, 0});
  const Dataset data = classification_from_arrays(
      read_idx(write_idx(images), "images"), read_idx(write_idx(labels), "labels"), 10, 1.0 / 255);
  EXPECT_EQ(data.inputs, Tensor::of<float>({2, 1, 2}, {0, 1, 0.2F, 0.4F}));
  EXPECT_EQ(data.targets, Tensor::of<std::int32_t>({2}, {9, 0}));
  const auto refused = [&](const Tensor& bad) {
    return error_of([&] { classification_from_arrays(images, bad, 10); });
  };
  EXPECT_THAT(refused(Tensor::of<std::int64_t>({2}, {3, -1})).message(),
              ::testing::HasSubstr("row 1: found the label -1"));
  EXPECT_EQ(refused(Tensor::of<std::uint64_t>({2}, {3, std::uint64_t{1} << 63})).category(),
            Category::invalid_data);
  EXPECT_EQ(refused(Tensor(DType::f32, {2})).category(), Category::dtype_mismatch);
  EXPECT_EQ(refused(Tensor(DType::i32, {2, 1})).category(), Category::shape_mismatch);
  EXPECT_EQ(refused(Tensor(DType::i32, {3})).category(), Category::shape_mismatch);
}

TEST(Dataset, TakeRowsIntoATensor_NeedsTheTypeOfTheResult) {
  const Tensor from = Tensor::of<float>({3, 2}, {0, 1, 2, 3, 4, 5});
  const std::int64_t rows[] = {2, 0};
  Tensor result(DType::f32, {2, 2});
  take_rows(from, rows, result);
  EXPECT_EQ(result, Tensor::of<float>({2, 2}, {4, 5, 0, 1}));
  for (Tensor bad :
       {Tensor(DType::f32, {3, 2}), Tensor(DType::f32, {2, 3}), Tensor(DType::f32, {2})}) {
    EXPECT_EQ(error_of([&] { take_rows(from, rows, bad); }).category(), Category::shape_mismatch);
  }
  Tensor bad(DType::i32, {2, 2});
  EXPECT_EQ(error_of([&] { take_rows(from, rows, bad); }).category(), Category::dtype_mismatch);
}

}  // namespace
}  // namespace mulgrad
