#pragma once

#include <cstdint>

#include "base/error_reason.h"
#include "base/ndk/operation_type.h"
#include "base/ntstatus.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd {

// Completions for which a completion queue is armed. The numbers are NDK's.
enum class CqNotifyType : uint8_t {
  // Failures of the queue itself only.
  kErrors = 0,
  // Any completion.
  kAny = 1,
  // A receive that was sent with kOpFlagSolicit, and any completion that failed.
  kSolicited = 2,
};

// The end of one posted request. Source: NDK_RESULT_EX.
struct Completion {
  // kSuccess, kCancelled for a flushed request, or the status of the failure. After a failure the queue pair is
  // unusable.
  NtStatus status = NtStatus::kSuccess;
  // Reason of the failure, finer than the status: whose memory refused an access, for example. UNSPECIFIED for success,
  // and from a daemon that is older than this field.
  ErrorReason reason = ErrorReason::UNSPECIFIED;
  OperationType type = OperationType::kSend;
  // Bytes received; set for successful receives only.
  uint32_t bytes = 0;
  // As given when the queue pair was created.
  uint64_t qp_context = 0;
  // As given with the request.
  uint64_t request_context = 0;
  // With kReceiveAndInvalidate: its owner's token that the sender invalidated. Otherwise 0.
  RemoteToken invalidated_token;
  // Which request this is: its queue pair, and its number among those of the initiator or the receive queue, from 1
  // modulo 2^32. Both 0 from a daemon that is older than these fields.
  QueuePairId queue_pair;
  uint32_t request_number = 0;

  bool ok() const { return status == NtStatus::kSuccess; }
};

}  // namespace rnicd
