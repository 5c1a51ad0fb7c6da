#include "base/error_reason.h"

#include <algorithm>
#include <array>

namespace rnicd {
namespace {

constexpr std::array kRows = {
#define RNICD_REASON(name, number, code, ntstatus, sentence, advice) \
  ErrorReasonRow{ErrorReason::name, #name, absl::StatusCode::code, NtStatus::ntstatus, sentence},
#include "base/error_reasons.inc"
#undef RNICD_REASON
};

}  // namespace

std::span<const ErrorReasonRow> AllErrorReasons() { return kRows; }

const ErrorReasonRow& RowOf(ErrorReason reason) {
  const auto by_reason = [reason](const ErrorReasonRow& row) { return row.reason == reason; };
  const auto* const found = std::find_if(kRows.begin(), kRows.end(), by_reason);
  return found != kRows.end() ? *found : RowOf(ErrorReason::INTERNAL_FAULT);
}

}  // namespace rnicd
