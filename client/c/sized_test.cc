#include "client/c/sized.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/status.h"
#include "client/c/result.h"

namespace rnicd::c {
namespace {

// What this library knows, and what one of tomorrow does.
struct Known {
  size_t size;
  uint64_t first;
  uint64_t second;
};
struct Larger {
  Known known;
  uint64_t third;
};

absl::StatusOr<Known> TakeLarger(const Larger& larger) { return Take(&larger.known, "options"); }

TEST(SizedStructs, AreTakenAsTheyAre) {
  const Known given = {.size = sizeof(Known), .first = 1, .second = 2};
  const auto own = Take(&given, "options");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->first, 1u);
  EXPECT_EQ(own->second, 2u);
}

TEST(SizedStructs, WhatASmallerOneLacksIsZero) {
  const Known given = {.size = offsetof(Known, second), .first = 1, .second = 2};
  const auto own = Take(&given, "options");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->first, 1u);
  EXPECT_EQ(own->second, 0u);
}

TEST(SizedStructs, ALargerOneMayHaveZeros) {
  const auto own = TakeLarger({.known = {.size = sizeof(Larger), .first = 1, .second = 2}, .third = 0});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->second, 2u);
}

TEST(SizedStructs, ALargerOneWithAnUnknownValueIsRefused) {
  const auto own = TakeLarger({.known = {.size = sizeof(Larger), .first = 1, .second = 2}, .third = uint64_t{1} << 63});
  EXPECT_EQ(Fail(own.status()), -E2BIG);
  EXPECT_STREQ(rnicd_last_error()->field, "options.size");
  EXPECT_EQ(rnicd_last_error()->limit, sizeof(Known));
}

TEST(SizedStructs, ASizeThatWasNotSetIsRefused) {
  const Known given = {};
  EXPECT_EQ(Fail(Take(&given, "options").status()), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options.size");
}

TEST(SizedStructs, NullIsRefusedUnlessItMeansDefaults) {
  EXPECT_EQ(Fail(Take<Known>(nullptr, "options").status()), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options");
  const auto own = TakeOptional<Known>(nullptr, "options");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->first, 0u);
}

TEST(SizedStructs, ResultsFillWhatTheCallerHas) {
  const Known own = {.size = sizeof(Known), .first = 1, .second = 2};
  Known to = {.size = offsetof(Known, second), .first = 7, .second = 8};
  EXPECT_TRUE(Fill(own, &to, "info").ok());
  EXPECT_EQ(to.size, offsetof(Known, second));
  EXPECT_EQ(to.first, 1u);
  EXPECT_EQ(to.second, 8u);
}

TEST(SizedStructs, ResultsLeaveTheTailOfALargerOne) {
  const Known own = {.size = sizeof(Known), .first = 1, .second = 2};
  Larger to = {.known = {.size = sizeof(Larger), .first = 7, .second = 8}, .third = 0};
  EXPECT_TRUE(Fill(own, &to.known, "info").ok());
  EXPECT_EQ(to.known.size, sizeof(Larger));
  EXPECT_EQ(to.known.second, 2u);
  to.third = 1;
  EXPECT_EQ(Fail(Fill({.size = sizeof(Known), .first = 9, .second = 9}, &to.known, "info")), -E2BIG);
  EXPECT_EQ(to.known.first, 1u);
}

}  // namespace
}  // namespace rnicd::c
