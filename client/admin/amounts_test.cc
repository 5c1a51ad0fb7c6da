#include "client/admin/amounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rnicd {
namespace {

using testing::HasSubstr;

TEST(ParseSize, TakesBinaryUnits) {
  EXPECT_EQ(ParseSize("0"), 0u);
  EXPECT_EQ(ParseSize("7B"), 7u);
  EXPECT_EQ(ParseSize("64KiB"), 64u << 10);
  EXPECT_EQ(ParseSize("64MiB"), 64u << 20);
  EXPECT_EQ(ParseSize("3GiB"), 3ull << 30);
  EXPECT_EQ(ParseSize("2TiB"), 2ull << 40);
}

TEST(ParseSize, TakesWhatFitsInto64BitsAndNoMore) {
  EXPECT_EQ(ParseSize("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseSize("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseSize("16777215TiB"), 16777215ull << 40);
  EXPECT_EQ(ParseSize("16777216TiB"), std::nullopt);
}

TEST(ParseSize, RefusesAllElse) {
  for (const char* text : {"", "MiB", "-1", "+1", " 1", "1 ", "1.5GiB", "64MB", "64mib", "64Mi", "0x10"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(ParseAmount, TakesTheUnitsOfItsCallerOnly) {
  constexpr AmountUnit kDozens[] = {{"dozen", 12}};
  EXPECT_EQ(ParseAmount("2dozen", kDozens), 24u);
  EXPECT_EQ(ParseAmount("2", kDozens), std::nullopt);
}

TEST(ParseNumber, IsBounded) {
  EXPECT_EQ(ParseNumber("16", 16), 16u);
  EXPECT_EQ(ParseNumber("17", 16), std::nullopt);
  EXPECT_EQ(ParseNumber("1KiB", UINT64_MAX), std::nullopt);
}

class LimitSetterTest : public testing::Test {
 protected:
  std::string Message(std::string_view list) {
    const absl::Status status = LimitSetter(limits_).SetList(list);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << list;
    return std::string(status.message());
  }

  v1::ResourceLimits limits_;
};

TEST_F(LimitSetterTest, SetsLimitsByTheirNames) {
  ASSERT_TRUE(LimitSetter(limits_).SetList("regions=100,memory_bytes=64MiB,requests_per_second=7").ok());
  v1::ResourceLimits expected;
  expected.set_regions(100);
  expected.set_memory_bytes(64 << 20);
  expected.set_requests_per_second(7);
  EXPECT_EQ(limits_.SerializeAsString(), expected.SerializeAsString());
}

TEST_F(LimitSetterTest, TheEmptyListSetsNothing) {
  EXPECT_TRUE(LimitSetter(limits_).SetList("").ok());
  EXPECT_EQ(limits_.ByteSizeLong(), 0u);
}

TEST_F(LimitSetterTest, OnlyBytesTakeSizes) {
  EXPECT_THAT(Message("regions=1KiB"), HasSubstr("'1KiB' is not a number"));
  EXPECT_THAT(Message("pinned_bytes=much"), HasSubstr("'much' is not a size"));
}

TEST_F(LimitSetterTest, UnknownNamesAreRefused) {
  EXPECT_THAT(Message("pages=1"), HasSubstr("'pages' is not a limit of policy.proto"));
  EXPECT_THAT(Message("=1"), HasSubstr("'' is not a limit"));
}

TEST_F(LimitSetterTest, ALimitIsGivenOnce) {
  EXPECT_THAT(Message("regions=1,sessions=2,regions=1"), HasSubstr("regions is given twice"));
  LimitSetter setter(limits_);
  ASSERT_TRUE(setter.Set("windows", "1").ok());
  EXPECT_FALSE(setter.Set("windows", "1").ok());
}

TEST_F(LimitSetterTest, AnItemWithoutAValueIsRefused) {
  EXPECT_THAT(Message("regions"), HasSubstr("'regions' is not a limit and its value"));
  EXPECT_THAT(Message("sessions=1,,regions=2"), HasSubstr("'' is not a limit and its value"));
}

}  // namespace
}  // namespace rnicd
