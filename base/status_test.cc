#include "base/status.h"

#include <gtest/gtest.h>

namespace rnicd {
namespace {

TEST(Status, AFailureCarriesItsInfoThereAndBack) {
  for (const char* const field : {"", "length", "mdl_chain[3].byte_count", "mmap: ENOMEM", " a  b ", "1 2 3 4"}) {
    const ErrorInfo info{.reason = ErrorReason::QUOTA_PINNED_BYTES,
                         .field = field,
                         .limit = UINT64_MAX,
                         .used = 0,
                         .requested = 12345678901234567890u};
    const ErrorInfo back = ErrorInfoOf(MakeError(info));
    EXPECT_EQ(back.reason, info.reason);
    EXPECT_EQ(back.field, info.field);
    EXPECT_EQ(back.limit, info.limit);
    EXPECT_EQ(back.used, info.used);
    EXPECT_EQ(back.requested, info.requested);
  }
}

TEST(Status, CodeAndTextComeFromTheReasonsRow) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    const absl::Status status = MakeError(row.reason, "field");
    EXPECT_FALSE(status.ok()) << row.name;
    EXPECT_EQ(status.code(), row.code) << row.name;
    EXPECT_EQ(std::string_view(status.message().data(), status.message().size()), row.sentence);
    EXPECT_EQ(NtStatusOf(status), row.ntstatus) << row.name;
    EXPECT_TRUE(FailedWith(status, row.reason)) << row.name;
  }
}

TEST(Status, AFailureThatIsNotOursIsAnInternalFault) {
  const absl::Status foreign = absl::UnavailableError("somewhere else");
  EXPECT_TRUE(FailedWith(foreign, ErrorReason::INTERNAL_FAULT));
  EXPECT_EQ(NtStatusOf(foreign), NtStatus::kInternalError);
}

TEST(Status, OkFailedWithNothing) {
  EXPECT_EQ(ErrorInfoOf(absl::OkStatus()).reason, ErrorReason::UNSPECIFIED);
  EXPECT_EQ(NtStatusOf(absl::OkStatus()), NtStatus::kSuccess);
  EXPECT_FALSE(FailedWith(absl::OkStatus(), ErrorReason::UNSPECIFIED));
}

TEST(Status, APrefixGoesBeforeTheFieldAndLeavesTheRest) {
  const absl::Status inner = MakeError(
      {.reason = ErrorReason::RATE_LIMITED, .field = "length", .limit = 1, .requested = 3, .retry_after_ms = 20});
  const ErrorInfo info = ErrorInfoOf(WithFieldPrefix(WithFieldPrefix(inner, "mr."), "items[2]."));
  EXPECT_EQ(info.field, "items[2].mr.length");
  EXPECT_EQ(info.reason, ErrorReason::RATE_LIMITED);
  EXPECT_EQ(info.limit, 1u);
  EXPECT_EQ(info.requested, 3u);
  EXPECT_EQ(info.retry_after_ms, 20u);
  EXPECT_TRUE(WithFieldPrefix(absl::OkStatus(), "items[2].").ok());
}

absl::Status PassOn(const absl::Status& status) {
  RNICD_RETURN_IF_ERROR(status);
  return MakeError(ErrorReason::LENGTH_ZERO);
}

absl::StatusOr<int> Twice(const absl::StatusOr<int>& value) {
  RNICD_ASSIGN_OR_RETURN(const int number, value);
  return 2 * number;
}

TEST(Status, AnotherFieldLeavesTheMessage) {
  const absl::Status inner =
      MakeErrorWithDetail(ErrorInfo{.reason = ErrorReason::DEVICE_NOT_CAPABLE, .field = "memory_id"}, "card rxa");
  const absl::Status outer = WithFieldPrefix(inner, "items[2].");
  EXPECT_EQ(ErrorInfoOf(outer).field, "items[2].memory_id");
  EXPECT_EQ(outer.message(), "the device cannot do this (card rxa)");
  EXPECT_EQ(WithField(outer, "").message(), outer.message());
  EXPECT_EQ(ErrorInfoOf(WithField(outer, "")).field, "");
}

TEST(Status, TheMessageOfAFailureThatIsNotOursIsNotPassedOn) {
  const absl::Status outer = WithField(absl::InternalError("a secret"), "size");
  EXPECT_TRUE(FailedWith(outer, ErrorReason::INTERNAL_FAULT));
  EXPECT_EQ(outer.message().find("secret"), absl::string_view::npos);
}

TEST(Status, TheMacrosReturnTheFailureAndGoOnWithoutOne) {
  EXPECT_TRUE(FailedWith(PassOn(MakeError(ErrorReason::BATCH_SIZE)), ErrorReason::BATCH_SIZE));
  EXPECT_TRUE(FailedWith(PassOn(absl::OkStatus()), ErrorReason::LENGTH_ZERO));
  EXPECT_EQ(*Twice(21), 42);
  EXPECT_TRUE(FailedWith(Twice(MakeError(ErrorReason::BATCH_SIZE)).status(), ErrorReason::BATCH_SIZE));
}

}  // namespace
}  // namespace rnicd
