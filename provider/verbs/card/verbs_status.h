#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "base/ntstatus.h"

namespace rnicd::provider {

// Memory that a process may still pin; distinguishes the two meanings of ENOMEM.
struct PinBudget {
  // True when the kernel does not hold this process to RLIMIT_MEMLOCK (CAP_IPC_LOCK, or no limit).
  bool unlimited = true;
  // Bytes still free under the limit; meaningless when unlimited.
  uint64_t free_bytes = 0;
};
// Current budget of this process. Source: proc(5) "VmPin", getrlimit(2), capabilities(7).
PinBudget ReadPinBudget();
// Budget of a process with this /proc/PID/status and an RLIMIT_MEMLOCK of `limit_bytes` (RLIM_INFINITY: none).
PinBudget PinBudgetOf(std::string_view process_status, uint64_t limit_bytes);

// The only table from a verb's errno to a reason. `call` names the verb for the detail: "ibv_reg_mr".
//   ENODEV, EIO                     DEVICE_REMOVED
//   ENOMEM, ENOSPC, EMFILE, EAGAIN  DEVICE_OUT_OF_RESOURCES
//   EOPNOTSUPP, ENOSYS              DEVICE_NOT_CAPABLE
//   anything else                   DEVICE_FAILED
absl::Status VerbStatus(int error, std::string_view call);
// The first row of that table.
bool MeansRemoved(int error);
// Status of a failed registration of `bytes`, for which some errno values mean more than in VerbStatus:
//   EFAULT                          MEMORY_NOT_PINNABLE
//   EPERM                           DEVICE_MEMLOCK_LIMIT: a limit of 0 and no CAP_IPC_LOCK
//   ENOMEM                          DEVICE_MEMLOCK_LIMIT when `budget` is below `bytes`, else DEVICE_OUT_OF_RESOURCES
absl::Status RegistrationStatus(int error, uint64_t bytes, const PinBudget& budget);

// Status of a failed registration of a dma-buf. The errno may be its exporter's, some other driver's, so it never means
// that the card was removed:
//   EOPNOTSUPP, ENOSYS, EPROTONOSUPPORT, ENOTTY  DEVICE_NOT_CAPABLE: the card's library or driver, or the kernel
//   ENOMEM, ENOSPC, EMFILE, EAGAIN               DEVICE_OUT_OF_RESOURCES
//   anything else                                MEMORY_NOT_PINNABLE
absl::Status DmabufStatus(int error);

// Kind of the request a completion belongs to; the meaning of a hardware status depends on it.
enum class WorkKind : uint8_t { kInitiator, kBind, kReceive };
// The only table from a work completion's status to NDK's. Cards differ in which status they choose (rxe calls a bad
// local key LOC_QP_OP_ERR, others LOC_PROT_ERR), so callers may rely on success, cancelled and timeout, not on more.
NtStatus CompletionStatus(ibv_wc_status status, WorkKind kind);
// The peer's card refused, and has ended the connection on its side.
bool IsRemoteRefusal(ibv_wc_status status);
// The peer did not respond.
bool IsPeerSilent(ibv_wc_status status);

}  // namespace rnicd::provider
