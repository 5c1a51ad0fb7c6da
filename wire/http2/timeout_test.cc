#include "wire/http2/timeout.h"

#include <gtest/gtest.h>

namespace rnicd::http2 {
namespace {

using std::chrono::nanoseconds;

TEST(ParseTimeout, TakesUpToEightDigitsAndAUnit) {
  EXPECT_EQ(ParseTimeout("1H"), std::chrono::hours(1));
  EXPECT_EQ(ParseTimeout("2M"), std::chrono::minutes(2));
  EXPECT_EQ(ParseTimeout("3S"), std::chrono::seconds(3));
  EXPECT_EQ(ParseTimeout("4m"), std::chrono::milliseconds(4));
  EXPECT_EQ(ParseTimeout("5u"), std::chrono::microseconds(5));
  EXPECT_EQ(ParseTimeout("00000006n"), std::chrono::nanoseconds(6));
  EXPECT_EQ(ParseTimeout("0m"), std::chrono::nanoseconds(0));
  EXPECT_EQ(ParseTimeout("99999999S"), std::chrono::seconds(99'999'999));
}

TEST(ParseTimeout, TheLongestIsACentury) {
  EXPECT_EQ(ParseTimeout("99999999H"), std::chrono::hours(876'000));
  EXPECT_EQ(ParseTimeout("876000H"), std::chrono::hours(876'000));
  EXPECT_EQ(ParseTimeout("875999H"), std::chrono::hours(875'999));
}

TEST(ParseTimeout, RefusesEverythingElse) {
  for (const char* text : {"", "m", "1", "123456789m", "1s", "1h", "-1m", "+1m", "1.5S", " 1S", "1 S", "1mm", "0x1S"}) {
    EXPECT_EQ(ParseTimeout(text), std::nullopt) << text;
  }
}

TEST(TimeoutText, IsInTheFinestUnitOfEightDigits) {
  EXPECT_EQ(TimeoutText(nanoseconds(1)), "1n");
  EXPECT_EQ(TimeoutText(nanoseconds(99'999'999)), "99999999n");
  EXPECT_EQ(TimeoutText(nanoseconds(100'000'000)), "100000u");
  EXPECT_EQ(TimeoutText(std::chrono::seconds(30)), "30000000u");
  EXPECT_EQ(TimeoutText(std::chrono::hours(24)), "86400000m");
  EXPECT_EQ(TimeoutText(std::chrono::hours(876'000)), "52560000M");
  EXPECT_EQ(TimeoutText(nanoseconds::max()), "2562048H");
}

TEST(TimeoutText, IsRoundedUp) {
  EXPECT_EQ(TimeoutText(nanoseconds(100'000'001)), "100001u");
  EXPECT_EQ(TimeoutText(nanoseconds(99'999'999'001)), "100000m") << "rounding has made nine digits";
}

TEST(TimeoutText, NoTimeIsTheShortest) {
  for (const nanoseconds none : {nanoseconds(0), nanoseconds(-1), nanoseconds::min()}) {
    EXPECT_EQ(TimeoutText(none), "1n");
  }
}

// Never less than was asked for, and at most a 10,000th more.
TEST(TimeoutText, ParseTimeoutReadsIt) {
  for (nanoseconds timeout(1); timeout < std::chrono::hours(800'000); timeout = timeout * 3 + nanoseconds(1)) {
    const std::optional<nanoseconds> parsed = ParseTimeout(TimeoutText(timeout));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_GE(*parsed, timeout);
    EXPECT_LE(*parsed - timeout, timeout / 10'000);
  }
}

}  // namespace
}  // namespace rnicd::http2
