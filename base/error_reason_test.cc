#include "base/error_reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rnicd {
namespace {

TEST(ErrorReason, NumbersAndNamesAreUniqueAndNoneIsZero) {
  std::set<uint32_t> numbers = {0};
  std::set<std::string> names = {"UNSPECIFIED"};
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    EXPECT_TRUE(numbers.insert(static_cast<uint32_t>(row.reason)).second) << row.name;
    EXPECT_TRUE(names.insert(std::string(row.name)).second) << row.name;
  }
}

TEST(ErrorReason, EveryRowIsAFailureWithAKnownNtstatusAndASentence) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    EXPECT_NE(row.code, absl::StatusCode::kOk) << row.name;
    EXPECT_NE(static_cast<uint32_t>(row.ntstatus) & 0x80000000, 0u) << row.name << " would pass for success";
    EXPECT_NE(NtStatusName(row.ntstatus), "STATUS_UNKNOWN") << row.name;
    EXPECT_FALSE(row.sentence.empty()) << row.name;
    EXPECT_NE(row.sentence.back(), '.') << row.name;
  }
}

TEST(ErrorReason, RowOfFindsEveryRowAndAnswersAFaultForAStranger) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    EXPECT_EQ(RowOf(row.reason).name, row.name);
  }
  EXPECT_EQ(RowOf(static_cast<ErrorReason>(9999)).reason, ErrorReason::INTERNAL_FAULT);
  EXPECT_EQ(RowOf(ErrorReason::UNSPECIFIED).reason, ErrorReason::INTERNAL_FAULT);
}

TEST(NtStatusName, NamesTheListAndNothingElse) {
  EXPECT_EQ(NtStatusName(NtStatus::kSuccess), "STATUS_SUCCESS");
  EXPECT_EQ(NtStatusName(NtStatus::kPending), "STATUS_PENDING");
  EXPECT_EQ(NtStatusName(NtStatus::kImplementationLimit), "STATUS_IMPLEMENTATION_LIMIT");
  EXPECT_EQ(NtStatusName(static_cast<NtStatus>(0xdeadbeef)), "STATUS_UNKNOWN");
}

}  // namespace
}  // namespace rnicd
