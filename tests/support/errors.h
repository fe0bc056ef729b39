// Calls that throw mulgrad::Error, in tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace mulgrad::testing {

// EXPECT_THAT([] { call(); }, throws(Category::shape_mismatch, "part of the message")).
inline auto throws(Category category, const std::string& part) {
  return ::testing::Throws<Error>(::testing::AllOf(
      ::testing::Property("category", &Error::category, category),
      ::testing::Property("message", &Error::message, ::testing::HasSubstr(part))));
}

// The Error that f throws, for a closer look. A failure of the test, and an error without a
// message, when it throws none.
template <class F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an Error";
  return Error(Category::parse_error, "");
}

}  // namespace mulgrad::testing
