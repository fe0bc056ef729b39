#include "core/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

Csv read(std::string_view text, DType dtype = DType::f32) { return read_csv(text, dtype, "t.csv"); }

TEST(Csv, NumbersOnly_HasNoHeader) {
  const Csv csv = read("1,2.5,-3\n4e1,+5,.5\n");
  EXPECT_TRUE(csv.header.empty());
  EXPECT_EQ(csv.values, Tensor::of<float>({2, 3}, {1, 2.5, -3, 40, 5, .5}));
}

TEST(Csv, FirstLineWithANonNumber_IsTheHeader) {
  const Csv csv = read("x, label ,3\n1,2,3\n");
  EXPECT_THAT(csv.header, ElementsAre("x", "label", "3"));
  EXPECT_EQ(csv.values, Tensor::of<float>({1, 3}, {1, 2, 3}));
}

TEST(Csv, CarriageReturnsBlanksMarkAndMissingNewline_AreFine) {
  EXPECT_EQ(read("\xEF\xBB\xBF 1 ,\t2\r\n3,4\r\n5,6").values,
            Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read("1\n2\n\n \n").values, Tensor::of<float>({2, 1}, {1, 2}));
}

TEST(Csv, OtherDtypes_AreReadExactly) {
  EXPECT_EQ(read("9007199254740993,-1\n", DType::i64).values,
            Tensor::of<std::int64_t>({1, 2}, {9007199254740993, -1}));
  EXPECT_EQ(read("1,0\n", DType::i1).values, Tensor::of<bool>({1, 2}, {true, false}));
  EXPECT_EQ(read("0.1\n", DType::f64).values, Tensor::of<double>({1, 1}, {0.1}));
}

TEST(Csv, InfAndNan_AreNumbersOfFloatsAlone) {
  const Tensor values = read("inf,-Infinity,NaN\n", DType::f64).values;
  EXPECT_EQ(values.data<double>()[0], INFINITY);
  EXPECT_EQ(values.data<double>()[1], -INFINITY);
  EXPECT_TRUE(std::isnan(values.data<double>()[2]));
  EXPECT_EQ(error_of([] { read("1\nnan\n", DType::i32); }).category(), Category::invalid_data);
}

struct BadText {
  std::string_view text;
  DType dtype;
  std::string location;
  std::string message;
};

TEST(Csv, BadText_IsAnErrorThatNamesThePlace) {
  const BadText cases[] = {
      {"1,2\n3,4,5\n", DType::f32, "t.csv:2:6", "3 fields, expected the 2"},
      {"1,2\n3\n5,6\n", DType::f32, "t.csv:2:2", "1 fields, expected the 2"},
      {"1,2,3\n4,5,6\n7,8", DType::f32, "t.csv:3:4", "2 fields, expected the 3"},  // truncated
      {"1,2\n3, 4x\n", DType::f32, "t.csv:2:4", "\"4x\", expected a number of dtype f32"},
      {"1,2\n3,\n", DType::f32, "t.csv:2:3", "\"\""},
      {"a,b\n1,c\n", DType::f32, "t.csv:2:3", "\"c\""},
      {"1\n1.5\n", DType::i32, "t.csv:2:1", "\"1.5\", expected a number of dtype i32"},
      {"1\n300\n", DType::u8, "t.csv:2:1", "\"300\""},
      {"1\n0x1p3\n", DType::f32, "t.csv:2:1", "0x1p3"},
      {"1\n+-3\n", DType::f32, "t.csv:2:1", "+-3"},
      {"1\n.\n", DType::f32, "t.csv:2:1", "\".\""},
      {"1,2\n\n3,4\n", DType::f32, "t.csv:2:1", "empty line"},
      {"", DType::f32, "t.csv:1:1", "no row"},
      {"a,b\n", DType::f32, "t.csv:1:1", "no row"},
  };
  for (const BadText& bad : cases) {
    const Error error = error_of([&] { read(bad.text, bad.dtype); });
    EXPECT_EQ(error.category(), Category::invalid_data) << bad.text;
    EXPECT_EQ(error.location(), bad.location) << bad.text;
    EXPECT_THAT(error.message(), HasSubstr(bad.message));
  }
}

TEST(Csv, MissingFileAndFolder_AreIoErrorsNamingThem) {
  for (const std::string path : {"no/such.csv", MULGRAD_SOURCE_DIR}) {
    const Error error = error_of([&] { read_csv_file(path, DType::f32); });
    EXPECT_EQ(error.category(), Category::io_error);
    EXPECT_THAT(error.message(), HasSubstr(path));
  }
}

TEST(Csv, Digits_AreRead) {
  const Csv csv = read_csv_file(MULGRAD_SOURCE_DIR "/examples/data/digits.csv", DType::f32);
  EXPECT_EQ(csv.values.type().shape, (Shape{1797, 65}));
}

}  // namespace
}  // namespace mulgrad
