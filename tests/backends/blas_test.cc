#include "backends/cpu/blas.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace mulgrad::cpu {
namespace {

TEST(BlasKernel, FakedDetections_ChangeOnlyOldKernelsOnNewerCpus) {
  struct Case {
    std::string present;
    VectorLevel cpu;
    std::string user;
    std::string expected;  // empty: left
  };
  const Case cases[] = {{"Prescott", VectorLevel::avx512, "", "SkylakeX"},
                        {"Prescott", VectorLevel::avx2, "", "Haswell"},
                        {"Prescott", VectorLevel::other, "", ""},
                        {"PRESCOTT", VectorLevel::avx2, "", "Haswell"},
                        {"Sandybridge", VectorLevel::avx2, "", "Haswell"},
                        {"Nehalem", VectorLevel::avx512, "", "SkylakeX"},
                        {"Prescott", VectorLevel::avx512, "Prescott", ""},
                        {"Prescott", VectorLevel::avx512, "Haswell", ""},
                        {"Haswell", VectorLevel::avx512, "", ""},
                        {"Zen", VectorLevel::avx512, "", ""},
                        {"SkylakeX", VectorLevel::avx512, "", ""},
                        {"Cooperlake", VectorLevel::avx512, "", ""},
                        {"armv8", VectorLevel::other, "", ""},
                        {"SomethingNew", VectorLevel::avx512, "", ""}};
  for (const Case& test : cases) {
    EXPECT_EQ(better_kernel(test.present, test.cpu, test.user).value_or(""), test.expected)
        << test.present << ", user's " << test.user;
  }
}

TEST(BlasKernel, PreparedFromSeveralThreads_IsOneAndNotOlderThanTheCpu) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { prepare_blas(2); });
  for (std::thread& thread : threads) thread.join();
  const std::string kernel = blas_kernel();
  EXPECT_FALSE(kernel.empty());
  const char* user = std::getenv("OPENBLAS_CORETYPE");
  EXPECT_EQ(better_kernel(kernel, vector_level(), user == nullptr ? "" : user), std::nullopt)
      << kernel;
  prepare_blas(3);
  EXPECT_EQ(blas_kernel(), kernel);
}

}  // namespace
}  // namespace mulgrad::cpu
