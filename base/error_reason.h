#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "base/ntstatus.h"

namespace rnicd {

// Reason for which a call was refused; the numbers are those of rnicd.v1.ErrorReason. See error_reasons.inc.
enum class ErrorReason : uint32_t {
  UNSPECIFIED = 0,
#define RNICD_REASON(name, number, code, ntstatus, sentence, advice) name = number,
#include "base/error_reasons.inc"
#undef RNICD_REASON
};

// Constant properties of a reason.
struct ErrorReasonRow {
  ErrorReason reason;
  std::string_view name;
  absl::StatusCode code;
  NtStatus ntstatus;
  std::string_view sentence;
};

// Every reason, in the order of the list.
std::span<const ErrorReasonRow> AllErrorReasons();

// The row of a reason; the row of INTERNAL_FAULT for a number that is not in the list.
const ErrorReasonRow& RowOf(ErrorReason reason);

}  // namespace rnicd
