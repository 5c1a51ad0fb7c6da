#include "base/error_reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

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
  const std::pair<NtStatus, std::string_view> rows[] = {
      {NtStatus::kSuccess, "STATUS_SUCCESS"},
      {NtStatus::kPending, "STATUS_PENDING"},
      {NtStatus::kBufferOverflow, "STATUS_BUFFER_OVERFLOW"},
      {NtStatus::kDeviceBusy, "STATUS_DEVICE_BUSY"},
      {NtStatus::kNoMoreEntries, "STATUS_NO_MORE_ENTRIES"},
      {NtStatus::kAccessViolation, "STATUS_ACCESS_VIOLATION"},
      {NtStatus::kInvalidDeviceRequest, "STATUS_INVALID_DEVICE_REQUEST"},
      {NtStatus::kBufferTooSmall, "STATUS_BUFFER_TOO_SMALL"},
      {NtStatus::kDataOverrun, "STATUS_DATA_OVERRUN"},
      {NtStatus::kIoTimeout, "STATUS_IO_TIMEOUT"},
      {NtStatus::kCancelled, "STATUS_CANCELLED"},
      {NtStatus::kRemoteResources, "STATUS_REMOTE_RESOURCES"},
      {NtStatus::kConnectionRefused, "STATUS_CONNECTION_REFUSED"},
      {NtStatus::kConnectionInvalid, "STATUS_CONNECTION_INVALID"},
      {NtStatus::kDeviceRemoved, "STATUS_DEVICE_REMOVED"},
      {NtStatus::kImplementationLimit, "STATUS_IMPLEMENTATION_LIMIT"},
      {static_cast<NtStatus>(0xdeadbeef), "STATUS_UNKNOWN"},
  };
  for (const auto& [status, name] : rows) {
    EXPECT_EQ(NtStatusName(status), name);
  }
}

// Programs compare with the numbers of ntstatus.h.
TEST(NtStatus, CompletionsCarryTheNumbersOfWindows) {
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kBufferOverflow), 0x80000005u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kDeviceBusy), 0x80000011u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kNoMoreEntries), 0x8000001Au);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kAccessViolation), 0xC0000005u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kInvalidDeviceRequest), 0xC0000010u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kBufferTooSmall), 0xC0000023u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kDataOverrun), 0xC000003Cu);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kIoTimeout), 0xC00000B5u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kCancelled), 0xC0000120u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kRemoteResources), 0xC000013Du);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kConnectionRefused), 0xC0000236u);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kConnectionInvalid), 0xC000023Au);
  EXPECT_EQ(static_cast<uint32_t>(NtStatus::kDeviceRemoved), 0xC00002B6u);
}

}  // namespace
}  // namespace rnicd
