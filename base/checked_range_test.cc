#include "base/checked_range.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace rnicd {
namespace {

constexpr uint64_t kTop = UINT64_MAX;

TEST(CheckedRange, IsMadeExactlyWhenItsLastByteHasAnAddress) {
  EXPECT_TRUE(CheckedRange::Make(0, 0).has_value());
  EXPECT_TRUE(CheckedRange::Make(0, kTop).has_value());
  EXPECT_TRUE(CheckedRange::Make(kTop, 0).has_value());
  EXPECT_TRUE(CheckedRange::Make(kTop - 1, 1).has_value());
  EXPECT_TRUE(CheckedRange::Make(kTop, 1).has_value());
  EXPECT_TRUE(CheckedRange::Make(1, kTop).has_value());
  EXPECT_TRUE(CheckedRange::Make(uint64_t{1} << 63, uint64_t{1} << 63).has_value());
  EXPECT_FALSE(CheckedRange::Make(kTop, 2).has_value());
  EXPECT_FALSE(CheckedRange::Make(2, kTop).has_value());
  EXPECT_FALSE(CheckedRange::Make(kTop, kTop).has_value());
  EXPECT_FALSE(CheckedRange::Make(uint64_t{1} << 63, (uint64_t{1} << 63) + 1).has_value());
}

TEST(CheckedRange, KnowsItsLastByte) {
  const auto range = CheckedRange::Make(kTop - 10, 10);
  EXPECT_EQ(range->start(), kTop - 10);
  EXPECT_EQ(range->length(), 10u);
  EXPECT_EQ(range->last(), kTop - 1);
  EXPECT_EQ(CheckedRange::Make(kTop - 9, 10)->last(), kTop);
}

TEST(CheckedRange, ContainsItsBytesAndNoneBeside) {
  const auto range = CheckedRange::Make(100, 50);
  EXPECT_TRUE(range->Contains(100, 50));
  EXPECT_TRUE(range->Contains(149, 1));
  EXPECT_FALSE(range->Contains(99, 1));
  EXPECT_FALSE(range->Contains(150, 1));
  EXPECT_FALSE(range->Contains(100, 51));
  EXPECT_FALSE(range->Contains(149, 2));
}

TEST(CheckedRange, AQuestionThatWrapsIsAnsweredNo) {
  const auto range = CheckedRange::Make(100, 50);
  EXPECT_FALSE(range->Contains(110, kTop));
  EXPECT_FALSE(range->Contains(110, kTop - 109));
  EXPECT_FALSE(range->Contains(kTop, 1));
  EXPECT_FALSE(range->Contains(kTop, kTop));
  EXPECT_FALSE(CheckedRange::Make(kTop - 5, 5)->Contains(kTop - 1, 7));
}

TEST(CheckedRange, ThatEndsAt2To64ContainsTheLastByteAndNotTheFirst) {
  const auto range = CheckedRange::Make(kTop - 9, 10);
  EXPECT_TRUE(range->Contains(kTop - 9, 10));
  EXPECT_TRUE(range->Contains(kTop, 1));
  EXPECT_FALSE(range->Contains(kTop, 2));
  EXPECT_FALSE(range->Contains(kTop - 9, 11));
  EXPECT_FALSE(range->Contains(0, 1));
  EXPECT_FALSE(range->Contains(0, 0));
}

TEST(CheckedRange, AnEmptyQuestionIsInsideUpToTheEnd) {
  const auto range = CheckedRange::Make(100, 50);
  EXPECT_TRUE(range->Contains(100, 0));
  EXPECT_TRUE(range->Contains(150, 0));
  EXPECT_FALSE(range->Contains(151, 0));
  EXPECT_FALSE(range->Contains(99, 0));
}

TEST(PagesTouched, CountsEveryPageTheRangeHasAByteIn) {
  struct Row {
    uint64_t start;
    uint64_t length;
    uint64_t pages;
  };
  const Row rows[] = {{0, 0, 0},
                      {5, 0, 0},
                      {0, 1, 1},
                      {0, kNdkPageBytes, 1},
                      {0, kNdkPageBytes + 1, 2},
                      {kNdkPageBytes - 1, 1, 1},
                      {kNdkPageBytes - 1, 2, 2},
                      {kNdkPageBytes - 1, kNdkPageBytes + 2, 3},
                      {kTop - 1, 1, 1},
                      {kTop - kNdkPageBytes, kNdkPageBytes, 2},
                      {kTop - kNdkPageBytes + 1, kNdkPageBytes, 1},
                      {kTop, 1, 1},
                      {0, kTop, kTop / kNdkPageBytes + 1},
                      {1, kTop, kTop / kNdkPageBytes + 1}};
  for (const Row& row : rows) {
    EXPECT_EQ(PagesTouched(*CheckedRange::Make(row.start, row.length), kNdkPageBytes), row.pages)
        << row.start << " + " << row.length;
  }
}

}  // namespace
}  // namespace rnicd
