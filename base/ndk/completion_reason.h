#pragma once

#include <span>

#include "base/error_reason.h"
#include "base/ndk/operation_type.h"
#include "base/ntstatus.h"

namespace rnicd {

// A way in which a completion can fail; see completion_outcomes.inc.
struct CompletionOutcome {
  OperationType type;
  ErrorReason reason;
};
std::span<const CompletionOutcome> AllCompletionOutcomes();

// Reason of a completion with this status; UNSPECIFIED for success, DEVICE_FAILED for a status that the list does not
// have for the operation. `at_peer`: the peer refused the access, not this side.
ErrorReason CompletionReason(OperationType type, NtStatus status, bool at_peer);

}  // namespace rnicd
