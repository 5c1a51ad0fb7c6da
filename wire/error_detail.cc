#include "wire/error_detail.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace rnicd::wire {
namespace {

ErrorInfo InfoFrom(const v1::ErrorDetail& detail) {
  return ErrorInfo{.reason = static_cast<ErrorReason>(detail.reason()),
                   .field = detail.field(),
                   .limit = detail.limit(),
                   .used = detail.used(),
                   .requested = detail.requested(),
                   .retry_after_ms = detail.retry_after_ms()};
}

bool IsKnown(ErrorReason reason) {
  const auto rows = AllErrorReasons();
  return std::any_of(rows.begin(), rows.end(), [reason](const ErrorReasonRow& row) { return row.reason == reason; });
}

}  // namespace

v1::ErrorDetail ToErrorDetail(const absl::Status& status) {
  v1::ErrorDetail detail;
  if (status.ok()) {
    return detail;
  }
  const ErrorInfo info = ErrorInfoOf(status);
  const ErrorReasonRow& row = RowOf(info.reason);
  detail.set_reason(static_cast<v1::ErrorReason>(row.reason));
  detail.set_ntstatus(static_cast<uint32_t>(row.ntstatus));
  detail.set_ntstatus_name(std::string(NtStatusName(row.ntstatus)));
  detail.set_field(info.field);
  detail.set_limit(info.limit);
  detail.set_used(info.used);
  detail.set_requested(info.requested);
  detail.set_retry_after_ms(static_cast<uint32_t>(info.retry_after_ms));
  // Only MakeError's own messages are for clients; any other failure is reported by its reason alone.
  detail.set_message(info.reason == ErrorReason::INTERNAL_FAULT ? std::string(row.sentence)
                                                                : std::string(status.message()));
  return detail;
}

absl::Status StatusFromDetail(const v1::ErrorDetail& detail, absl::StatusCode code_if_unknown) {
  const ErrorInfo info = InfoFrom(detail);
  const absl::Status made = MakeError(info);
  // The daemon's text may be more specific than the reason's.
  absl::Status status(IsKnown(info.reason) ? made.code() : code_if_unknown,
                      detail.message().empty() ? made.message() : absl::string_view(detail.message()));
  made.ForEachPayload(
      [&status](absl::string_view type, const absl::Cord& payload) { status.SetPayload(type, payload); });
  return status;
}

}  // namespace rnicd::wire
