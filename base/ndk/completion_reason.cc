#include "base/ndk/completion_reason.h"

#include <array>

namespace rnicd {
namespace {

constexpr std::array kOutcomes = {
#define RNICD_COMPLETION(operation, reason) CompletionOutcome{OperationType::operation, ErrorReason::reason},
#include "base/ndk/completion_outcomes.inc"
#undef RNICD_COMPLETION
};

}  // namespace

std::span<const CompletionOutcome> AllCompletionOutcomes() { return kOutcomes; }

ErrorReason CompletionReason(OperationType type, NtStatus status, bool at_peer) {
  if (status == NtStatus::kSuccess) {
    return ErrorReason::UNSPECIFIED;
  }
  for (const CompletionOutcome& outcome : kOutcomes) {
    // The one status that both sides can cause.
    const bool wrong_side =
        status == NtStatus::kAccessViolation && (outcome.reason == ErrorReason::REMOTE_ACCESS_REFUSED) != at_peer;
    if (outcome.type == type && RowOf(outcome.reason).ntstatus == status && !wrong_side) {
      return outcome.reason;
    }
  }
  return ErrorReason::DEVICE_FAILED;
}

}  // namespace rnicd
