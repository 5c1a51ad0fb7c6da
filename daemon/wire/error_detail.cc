#include "daemon/wire/error_detail.h"

#include <string>

#include "base/status.h"

namespace rnicd::wire {

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
  // Only MakeError's own messages are for clients; any other failure is reported by its reason alone.
  detail.set_message(info.reason == ErrorReason::INTERNAL_FAULT ? std::string(row.sentence)
                                                                : std::string(status.message()));
  return detail;
}

}  // namespace rnicd::wire
