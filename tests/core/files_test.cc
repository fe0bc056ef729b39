// safetensors, npy and IDX files, and the replacing of a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "autodiff/random.h"
#include "core/file.h"
#include "core/idx.h"
#include "core/npy.h"
#include "core/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace mulgrad {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

const std::string kGoldens = MULGRAD_SOURCE_DIR "/tests/goldens/files/";
constexpr DType kDtypes[] = {DType::i1,  DType::i8,  DType::i16, DType::i32, DType::i64,
                             DType::u8,  DType::u16, DType::u32, DType::u64, DType::bf16,
                             DType::f16, DType::f32, DType::f64};

// 0, 1, 2, ... as make_file_goldens.py has them.
Tensor counting(DType dtype, std::vector<std::int64_t> sizes) {
  std::vector<double> values(static_cast<std::size_t>(Tensor(dtype, sizes).elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(dtype == DType::i1 ? i % 2 : i);
  }
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

std::string safetensors(const std::string& header, const std::string& elements) {
  std::string result;
  for (int i = 0; i < 8; ++i) result += static_cast<char>(header.size() >> (8 * i));
  return result + header + elements;
}

TEST(Safetensors, FileOfPython_IsRead) {
  const Safetensors content = read_safetensors_file(kGoldens + "dtypes.safetensors");
  const std::pair<const char*, DType> names[] = {
      {"bool", DType::i1},     {"int8", DType::i8},     {"int16", DType::i16},
      {"int32", DType::i32},   {"int64", DType::i64},   {"uint8", DType::u8},
      {"uint16", DType::u16},  {"uint32", DType::u32},  {"uint64", DType::u64},
      {"float16", DType::f16}, {"float32", DType::f32}, {"float64", DType::f64}};
  for (const auto& [name, dtype] : names) {
    ASSERT_NE(content.find(name), nullptr) << name;
    EXPECT_EQ(*content.find(name), counting(dtype, {2, 3})) << name;
  }
  EXPECT_EQ(*content.find("scalar"), counting(DType::f32, {}));
  EXPECT_EQ(*content.find("empty"), counting(DType::f32, {0, 3}));
  EXPECT_EQ(content.tensors.size(), 14u);
  EXPECT_THAT(content.metadata,
              ElementsAre(std::pair("made by", "safetensors"), std::pair("\u00e4", "\u00f6")));
}

TEST(Safetensors, WrittenContent_IsReadBackInItsOrderWithAlignedElements) {
  Safetensors content;
  content.metadata = {{"", "empty name"}, {"quote\"\n", "\u00e4"}};
  for (const DType dtype : kDtypes) {
    content.tensors.push_back({std::string(to_string(dtype)), counting(dtype, {3})});
  }
  content.tensors.push_back({"a/b.c", Tensor(DType::f64, {2, 0, 4})});
  content.tensors.push_back({"", Tensor::scalar(std::nan(""))});
  const std::string bytes = write_safetensors(content);
  EXPECT_EQ(read_safetensors(bytes, "x"), content);
  // The header, with its blanks, ends at a multiple of 8; the widest elements follow it.
  const std::size_t header =
      8 + static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  EXPECT_EQ(header % 8, 0u);
  EXPECT_EQ(bytes.substr(header, 24), encode_tensor(counting(DType::i64, {3})));
  EXPECT_EQ(read_safetensors(write_safetensors({}), "x"), Safetensors{});
}

TEST(Safetensors, SmallAndOddFiles_AreRead) {
  const Safetensors only_metadata =
      read_safetensors(safetensors(R"({"__metadata__":{"k":"v"}})", ""), "x");
  EXPECT_TRUE(only_metadata.tensors.empty());
  EXPECT_THAT(only_metadata.metadata, ElementsAre(std::pair("k", "v")));
  EXPECT_EQ(read_safetensors(safetensors("{}", ""), "x"), Safetensors{});

  const Safetensors zeros = read_safetensors(
      safetensors(R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})",
                  std::string(16, '\0')),
      "x");
  EXPECT_EQ(*zeros.find("test"), Tensor(DType::i32, {2, 2}));

  // An f32 at an odd offset of the file, with others before it that the header lists later.
  const std::string one = encode_tensor(Tensor::scalar(1.5F));
  const Safetensors unaligned =
      read_safetensors(safetensors(R"({"f":{"shape":[],"dtype":"F32","data_offsets":[3,7]},)"
                                   R"("b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}  )",
                                   std::string("\1\0\1", 3) + one),
                       "x");
  ASSERT_EQ(unaligned.tensors.size(), 2u);
  EXPECT_EQ(unaligned.tensors[0], (NamedTensor{"f", Tensor::scalar(1.5F)}));
  EXPECT_EQ(unaligned.tensors[1].tensor, Tensor::of<bool>({3}, {true, false, true}));
}

struct BadFile {
  std::string bytes;
  std::string node;
  std::string message;
};

TEST(Safetensors, MalformedFile_IsAnErrorNamingTheTensor) {
  const auto entry = [](const std::string& fields) { return "{\"w\":{" + fields + "}}"; };
  const auto f32 = [](const std::string& name, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"F32","shape":[)" + std::to_string((end - begin) / 4) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  const std::string w = "{" + f32("w", 0, 8) + "}";
  const std::string eight(8, '\0');
  const BadFile cases[] = {
      {"", "", "found 0 bytes"},
      {std::string(7, '\1'), "", "found 7 bytes"},
      {safetensors(w, "").substr(0, 20), "", "expected one that ends within the 12"},
      {std::string(8, '\xFF') + w, "", "found a header of 18446744073709551615 bytes"},
      {safetensors("", ""), "", "no JSON"},
      {safetensors("[]", ""), "", "no JSON object"},
      {safetensors("{", ""), "", "no JSON: its byte 2"},
      {safetensors("{\"w\":1e999}", ""), "", "no JSON: it has a number beyond"},
      {safetensors("{\"\xFF\":{}}", ""), "", "no JSON"},
      {safetensors(w + w, eight), "", "no JSON"},
      {safetensors(std::string(100000, '['), ""), "", "nested too deeply"},
      {safetensors("{" + f32("w", 0, 8) + "," + f32("w", 0, 8) + "}", eight), "",
       "the key \"w\" twice"},
      {safetensors(R"({"w":{"dtype":"F32","dtype":"F32"}})", eight), "", "\"dtype\" twice"},
      {safetensors(R"({"__metadata__":{"k":1}})", ""), "", "metadata \"k\": found 1"},
      {safetensors(R"({"__metadata__":[]})", ""), "", "metadata"},
      {safetensors(w, eight + "1234"), "w", "found 4 bytes after the last tensor"},
      {safetensors("{}", "1234"), "", "found 4 bytes after a header without tensors"},
      {safetensors(w, "1234"), "w", "[0,8], expected ascending ones within the 4 bytes"},
      {safetensors("{" + f32("v", 0, 8) + "," + f32("w", 4, 12) + "}", eight + "1234"), "w",
       "offset 4, expected 8, the end of \"v\": they overlap"},
      {safetensors("{" + f32("v", 0, 4) + "," + f32("w", 8, 12) + "}", eight + "1234"), "w",
       "offset 8, expected 4, the end of \"v\": a hole"},
      {safetensors("{" + f32("w", 4, 8) + "}", eight), "w", "expected 0, the first byte: a hole"},
      {safetensors(entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), eight), "w",
       "ascending"},
      {safetensors(entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), eight), "w",
       "found 8 bytes of elements, expected the 12"},
      {safetensors(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,8])"), eight), "w",
       "shape: found -1"},
      {safetensors(entry(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), eight), "w",
       "shape: found 2.0"},
      {safetensors(entry(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), eight), "w",
       "expected a list"},
      {safetensors(entry(R"("dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0])"),
                   ""),
       "w", "does not fit 63 bits"},
      {safetensors(entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"),
                   eight),
       "w", "shape: found 18446744073709551615"},
      {safetensors(entry(R"("dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8])"), eight), "w",
       "F8_E4M3"},
      {safetensors(entry(R"("dtype":32,"shape":[2],"data_offsets":[0,8])"), eight), "w", "dtype"},
      {safetensors(entry(R"("dtype":"F32","shape":[2])"), eight), "w", "no \"data_offsets\""},
      {safetensors(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), eight), "w",
       "two offsets"},
      {safetensors(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1)"), eight), "w",
       "\"more\""},
      {safetensors(R"({"w":1})", eight), "w", "no JSON object"},
      {safetensors(entry(R"("dtype":"BOOL","shape":[8],"data_offsets":[0,8])"),
                   eight.substr(1) + "\2"),
       "w", "the byte 2 as element 7"},
  };
  for (const BadFile& bad : cases) {
    const Error error = error_of([&] { read_safetensors(bad.bytes, "file"); });
    EXPECT_EQ(error.category(), Category::invalid_data) << bad.message;
    EXPECT_EQ(error.location(), "file") << bad.message;
    EXPECT_EQ(error.node(), bad.node) << bad.message;
    EXPECT_THAT(error.message(), HasSubstr(bad.message));
  }
}

TEST(Safetensors, NamesThatCannotBeWritten_AreInvalidArguments) {
  const Tensor t = Tensor::scalar(1.0F);
  for (const Safetensors& content :
       {Safetensors{{{"a", t}, {"a", t}}, {}}, Safetensors{{{"__metadata__", t}}, {}},
        Safetensors{{{"\xFF", t}}, {}}, Safetensors{{}, {{"k", "\xFF"}}}}) {
    EXPECT_EQ(error_of([&] { write_safetensors(content); }).category(), Category::invalid_argument);
  }
}

TEST(Npy, FilesOfNumPy_AreReadInBothOrdersAndVersions) {
  const Tensor expected = counting(DType::f64, {2, 3, 4});
  for (const char* name : {"little_c", "little_fortran", "big_c", "big_fortran"}) {
    EXPECT_EQ(read_npy_file(kGoldens + name + ".npy"), expected) << name;
  }
  EXPECT_EQ(read_npy_file(kGoldens + "scalar.npy"), Tensor::scalar(true));
}

TEST(Npy, WrittenContent_IsReadBackAndAsNumPyWritesIt) {
  for (const DType dtype : kDtypes) {
    if (dtype == DType::bf16) continue;
    for (const std::vector<std::int64_t>& sizes :
         std::vector<std::vector<std::int64_t>>{{}, {5}, {2, 3}, {3, 0}, {2, 1, 2, 3}}) {
      const Tensor tensor = counting(dtype, sizes);
      EXPECT_EQ(read_npy(write_npy(tensor), "x"), tensor) << tensor.type().to_string();
    }
  }
  EXPECT_EQ(write_npy(counting(DType::i16, {5})), read_file(kGoldens + "vector.npy"));
  EXPECT_EQ(error_of([] { write_npy(Tensor(DType::bf16, {1})); }).category(),
            Category::dtype_mismatch);
}

std::string npy(const std::string& header, const std::string& elements, char version = 1) {
  std::string result = "\x93NUMPY";
  result += {version, '\0', static_cast<char>(header.size()), '\0'};
  if (version == 2) result += std::string(2, '\0');
  return result + header + elements;
}

TEST(Npy, MalformedFile_IsAnErrorWithItsReason) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string eight(8, '\0');
  ASSERT_EQ(read_npy(npy(good, eight), "x"), Tensor(DType::f32, {2}));
  ASSERT_EQ(read_npy(npy("{\"shape\":(2),'fortran_order':True,'descr':'>f4'}", eight, 2), "x"),
            Tensor(DType::f32, {2}));
  const BadFile cases[] = {
      {"", "", "starts otherwise"},
      {npy(good, eight).substr(0, 7), "", "version"},
      {npy(good, eight).substr(0, 9), "", "header's length"},
      {npy(good, eight, 9), "", "version 9"},
      {npy(good, eight).substr(0, 20), "", "within the 10"},
      {npy(good, eight + "1"), "", "found 9 bytes of elements, expected the 8"},
      {npy(good, "1234"), "", "found 4 bytes"},
      {npy("[]", eight), "", "expected '{'"},
      {npy("{'descr': '<f4', 'shape': (2,)}", eight), "", "lacks one"},
      {npy("{'descr': '<f4', 'descr': '<f4'}", eight), "", "'descr'"},
      {npy("{'kind': 1}", eight), "", "'kind'"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", eight), "",
       "structured"},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", eight), "", "True or False"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", eight), "", "a size"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", eight), "",
       "a size"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999, 99999999999)}", ""),
       "", "63 bits"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", eight), "", "the end"},
      {npy("{'descr': '<f4", eight), "", "quoted string"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", eight), "", "'<c8'"},
      {npy("{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", eight), "", "'|f4'"},
      {npy("{'descr': '', 'fortran_order': False, 'shape': (2,)}", eight), "", "''"},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\2"), "", "the byte 2"},
  };
  for (const BadFile& bad : cases) {
    const Error error = error_of([&] { read_npy(bad.bytes, "file"); });
    EXPECT_EQ(error.category(), Category::invalid_data) << bad.message;
    EXPECT_EQ(error.location(), "file") << bad.message;
    EXPECT_THAT(error.message(), HasSubstr(bad.message));
  }
}

TEST(Idx, FileOfTheMnistForm_IsReadAndWritten) {
  const std::string labels("\0\0\x08\1\0\0\0\3\7\2\1", 11);
  EXPECT_EQ(read_idx(labels, "x"), Tensor::of<std::uint8_t>({3}, {7, 2, 1}));
  EXPECT_EQ(write_idx(read_idx(labels, "x")), labels);
  const std::string halves("\0\0\x0B\2\0\0\0\1\0\0\0\2\1\2\xFF\xFE", 16);  // big endian
  EXPECT_EQ(read_idx(halves, "x"), Tensor::of<std::int16_t>({1, 2}, {0x0102, -2}));
  for (const DType dtype : kDtypes) {
    const Tensor tensor = counting(dtype, {2, 3, 4});
    const bool known = dtype == DType::u8 || dtype == DType::i8 || dtype == DType::i16 ||
                       dtype == DType::i32 || dtype == DType::f32 || dtype == DType::f64;
    if (known) {
      EXPECT_EQ(read_idx(write_idx(tensor), "x"), tensor) << to_string(dtype);
    } else {
      EXPECT_EQ(error_of([&] { write_idx(tensor); }).category(), Category::dtype_mismatch);
    }
  }
  EXPECT_EQ(
      error_of([] { write_idx(Tensor(DType::u8, std::vector<std::int64_t>(256, 1))); }).category(),
      Category::invalid_argument);
}

TEST(Idx, MalformedFile_IsAnErrorWithItsReason) {
  const std::string good("\0\0\x08\1\0\0\0\3\7\2\1", 11);
  const BadFile cases[] = {
      {"", "", "magic number"},
      {std::string("\0\0\x0A\0", 4), "", "no magic number"},
      {std::string("\1\0\x08\0", 4), "", "no magic number"},
      {std::string("\x1F\x8B\x08\0", 4), "", "gzip"},
      {good.substr(0, 7), "", "expected 1 sizes"},
      {good.substr(0, 10), "", "found 2 bytes of elements, expected the 3"},
      {good + "x", "", "found 4 bytes"},
      {std::string("\0\0\x08\2", 4) + std::string(8, '\xFF'), "", "does not fit 63 bits"},
  };
  for (const BadFile& bad : cases) {
    const Error error = error_of([&] { read_idx(bad.bytes, "file"); });
    EXPECT_EQ(error.category(), Category::invalid_data) << bad.message;
    EXPECT_EQ(error.location(), "file") << bad.message;
    EXPECT_THAT(error.message(), HasSubstr(bad.message));
  }
}

// Every truncation, every byte replaced by several others, and every byte left out or doubled:
// reading ends with a value or an Error, and nothing else.
TEST(Files, MutatedFiles_LoadOrThrow) {
  using Reader = std::function<void(std::string_view)>;
  const Reader read_st = [](std::string_view bytes) { read_safetensors(bytes, "x"); };
  const Reader read_np = [](std::string_view bytes) { read_npy(bytes, "x"); };
  const Reader read_ix = [](std::string_view bytes) { read_idx(bytes, "x"); };
  const std::pair<std::string, Reader> files[] = {
      {write_safetensors(
           {{{"w", counting(DType::f32, {2, 2})}, {"b", counting(DType::i1, {3})}}, {{"k", "v"}}}),
       read_st},
      {write_npy(counting(DType::f32, {2, 3})), read_np},
      {read_file(kGoldens + "big_fortran.npy"), read_np},
      {write_idx(counting(DType::i16, {2, 3})), read_ix},
  };
  std::int64_t loaded = 0;
  std::int64_t refused = 0;
  for (const auto& file : files) {
    const std::string& bytes = file.first;
    const Reader& reader = file.second;
    const auto attempt = [&](const std::string& mutant) {
      try {
        reader(mutant);
        ++loaded;
      } catch (const Error& error) {
        EXPECT_EQ(error.category(), Category::invalid_data) << error.what();
        ++refused;
      }
    };
    RandomStream random(1, 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      attempt(bytes.substr(0, i));
      attempt(bytes.substr(0, i) + bytes.substr(i + 1));
      attempt(bytes.substr(0, i) + bytes[i] + bytes.substr(i));
      for (const int value : {0, 1, 0x7F, 0xFF, int{'0'}, int{'9'}, int{'"'}, int{'}'},
                              static_cast<int>(random.below(256))}) {
        std::string mutant = bytes;
        mutant[i] = static_cast<char>(value);
        attempt(mutant);
      }
    }
    for (int i = 0; i < 300; ++i) {  // several at once
      std::string mutant = bytes;
      for (std::uint64_t k = random.below(6) + 1; k > 0; --k) {
        mutant[random.below(mutant.size())] = static_cast<char>(random.below(256));
      }
      attempt(mutant);
    }
  }
  EXPECT_GT(loaded, 500);  // bytes of elements, blanks
  EXPECT_GT(refused, 3000);
}

TEST(WriteFile, ReplacesTheOldContentAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  write_file(path, "old content");
  write_file(path + ".tmp", "left by one that was killed, and longer than what comes");
  write_file(path, std::string("new\0", 4));
  EXPECT_EQ(read_file(path), std::string("new\0", 4));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  write_file(path, "");
  EXPECT_EQ(read_file(path), "");
}

TEST(WriteFile, WhereNothingCanBeWritten_IsAnIoErrorAndKeepsTheOldFile) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { write_file(folder.file("no/such/x"), "1"); },
              testing::throws(Category::io_error, folder.file("no/such/x")));
  std::filesystem::create_directory(folder.file("d"));
  EXPECT_THAT([&] { write_file(folder.file("d"), "1"); },
              testing::throws(Category::io_error, "rename"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("d.tmp")));
  EXPECT_THAT([&] { read_file(folder.file("none")); }, testing::throws(Category::io_error, "none"));
  EXPECT_THAT([&] { read_safetensors_file(folder.file("none")); },
              testing::throws(Category::io_error, "none"));
}

TEST(WriteFile, WritersOfOnePath_WaitForEachOther) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  std::vector<pid_t> writers;
  for (char letter : {'a', 'b', 'c'}) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < 20; ++i) write_file(path, std::string(20000, letter));
      ::_exit(0);
    }
    writers.push_back(child);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    EXPECT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  const std::string content = read_file(path);
  EXPECT_EQ(content, std::string(20000, content[0]));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

}  // namespace
}  // namespace mulgrad
