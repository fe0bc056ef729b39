// Matcher for a call that throws mulgrad::Error.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "core/error.h"

namespace mulgrad::testing {

// EXPECT_THAT([] { call(); }, throws(Category::shape_mismatch, "part of the message")).
inline auto throws(Category category, const std::string& part) {
  return ::testing::Throws<Error>(::testing::AllOf(
      ::testing::Property("category", &Error::category, category),
      ::testing::Property("message", &Error::message, ::testing::HasSubstr(part))));
}

}  // namespace mulgrad::testing
