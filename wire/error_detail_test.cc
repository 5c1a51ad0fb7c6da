#include "wire/error_detail.h"

#include <gtest/gtest.h>

#include <string>

#include "base/status.h"

namespace rnicd::wire {
namespace {

TEST(ErrorDetail, EveryStatusHasTheNameOfTheProto) {
  const auto* on_wire = v1::NtStatus_descriptor();
  for (int index = 0; index < on_wire->value_count(); ++index) {
    const auto* value = on_wire->value(index);
    EXPECT_EQ("NT_" + std::string(NtStatusName(static_cast<NtStatus>(value->number()))), value->name());
  }
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    EXPECT_NE(on_wire->FindValueByNumber(static_cast<int>(row.ntstatus)), nullptr) << row.name;
  }
}

TEST(ErrorDetail, EveryReasonHasItsNumberAndNameOnTheWire) {
  const auto* on_wire = v1::ErrorReason_descriptor();
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    const auto* value = on_wire->FindValueByNumber(static_cast<int>(row.reason));
    ASSERT_NE(value, nullptr) << row.name;
    EXPECT_EQ(value->name(), "ERROR_REASON_" + std::string(row.name));
  }
}

TEST(ErrorDetail, NothingIsOnTheWireThatIsNotInTheList) {
  const auto* on_wire = v1::ErrorReason_descriptor();
  EXPECT_EQ(static_cast<size_t>(on_wire->value_count()), AllErrorReasons().size() + 1) << "and UNSPECIFIED";
  for (int index = 0; index < on_wire->value_count(); ++index) {
    const int number = on_wire->value(index)->number();
    if (number != 0) {
      EXPECT_EQ(RowOf(static_cast<ErrorReason>(number)).reason, static_cast<ErrorReason>(number))
          << on_wire->value(index)->name();
    }
  }
}

TEST(ErrorDetail, CarriesEverythingAProgramSwitchesOn) {
  const v1::ErrorDetail detail = ToErrorDetail(MakeError({.reason = ErrorReason::QUOTA_PINNED_BYTES,
                                                          .field = "items[3].length",
                                                          .limit = 4096,
                                                          .used = 1,
                                                          .requested = UINT64_MAX}));
  EXPECT_EQ(detail.reason(), v1::ERROR_REASON_QUOTA_PINNED_BYTES);
  EXPECT_EQ(detail.ntstatus(), 0xC000009Au);
  EXPECT_EQ(detail.ntstatus_name(), "STATUS_INSUFFICIENT_RESOURCES");
  EXPECT_EQ(detail.field(), "items[3].length");
  EXPECT_EQ(detail.limit(), 4096u);
  EXPECT_EQ(detail.used(), 1u);
  EXPECT_EQ(detail.requested(), UINT64_MAX);
  EXPECT_EQ(detail.message(), "too many pinned bytes, each page counted once");
}

TEST(ErrorDetail, OfOkIsEmptyAndOfAStrangersFailureAnInternalFault) {
  EXPECT_EQ(ToErrorDetail(absl::OkStatus()).ByteSizeLong(), 0u);
  const v1::ErrorDetail detail = ToErrorDetail(absl::DataLossError("a text that must not leave the daemon"));
  EXPECT_EQ(detail.reason(), v1::ERROR_REASON_INTERNAL_FAULT);
  EXPECT_EQ(detail.DebugString().find("must not leave"), std::string::npos);
}

TEST(ErrorDetail, EveryReasonArrivesAsItWasMade) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    const absl::Status made = MakeError({.reason = row.reason,
                                         .field = "mdl_chain[3].byte_count",
                                         .limit = 100,
                                         .used = 90,
                                         .requested = 11,
                                         .retry_after_ms = 12});
    const absl::Status arrived = StatusFromDetail(ToErrorDetail(made), absl::StatusCode::kUnknown);
    EXPECT_EQ(arrived, made) << row.name;
    EXPECT_EQ(NtStatusOf(arrived), row.ntstatus) << row.name;
  }
}

TEST(ErrorDetail, ATextForPeopleArrives) {
  const absl::Status made = MakeErrorWithDetail(ErrorReason::MEMORY_NOT_PINNABLE, "mmap: ENOMEM");
  EXPECT_EQ(StatusFromDetail(ToErrorDetail(made), absl::StatusCode::kUnknown).message(), made.message());
}

TEST(ErrorDetail, AnUnknownReasonKeepsItsNumberTheGivenCodeAndItsText) {
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(9999));
  detail.set_message("a reason of tomorrow");
  const absl::Status status = StatusFromDetail(detail, absl::StatusCode::kAborted);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "a reason of tomorrow");
  EXPECT_EQ(static_cast<uint32_t>(ErrorInfoOf(status).reason), 9999u);
}

}  // namespace
}  // namespace rnicd::wire
