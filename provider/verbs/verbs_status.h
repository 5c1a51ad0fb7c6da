#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "base/ntstatus.h"

namespace rnicd::provider {

// What a process may still pin, to tell the two meanings of ENOMEM apart.
struct PinBudget {
  // True when the kernel does not hold this process to RLIMIT_MEMLOCK (CAP_IPC_LOCK, or no limit).
  bool unlimited = true;
  // Bytes still free under the limit; says nothing when unlimited.
  uint64_t free_bytes = 0;
};
// Of this process, now. Source: proc(5) "VmPin", getrlimit(2), capabilities(7).
PinBudget ReadPinBudget();
// Of a process whose /proc/PID/status reads so and whose RLIMIT_MEMLOCK is `limit_bytes` (RLIM_INFINITY: none).
PinBudget PinBudgetOf(std::string_view process_status, uint64_t limit_bytes);

// The one table from a verb's errno to a reason. `call` names the verb for the detail: "ibv_reg_mr".
//   ENODEV, EIO                     DEVICE_REMOVED
//   ENOMEM, ENOSPC, EMFILE, EAGAIN  DEVICE_OUT_OF_RESOURCES
//   EOPNOTSUPP, ENOSYS              DEVICE_NOT_CAPABLE
//   anything else                   DEVICE_FAILED
absl::Status VerbStatus(int error, std::string_view call);
// The first row of that table.
bool MeansRemoved(int error);
// Of a registration of `bytes`, where the same numbers say more:
//   EFAULT                          MEMORY_NOT_PINNABLE
//   EPERM                           DEVICE_MEMLOCK_LIMIT: a limit of 0 and no CAP_IPC_LOCK
//   ENOMEM                          DEVICE_MEMLOCK_LIMIT when `budget` is below `bytes`, else DEVICE_OUT_OF_RESOURCES
absl::Status RegistrationStatus(int error, uint64_t bytes, const PinBudget& budget);

// Which request a completion belongs to; the same hardware status says different things of the two.
enum class WorkKind : uint8_t { kInitiator, kBind, kReceive };
// The one table from a work completion's status to NDK's. Cards differ in which status they choose (rxe calls a bad
// local key LOC_QP_OP_ERR, others LOC_PROT_ERR), so callers may rely on success, cancelled and timeout, not on more.
NtStatus CompletionStatus(ibv_wc_status status, WorkKind kind);
// The peer's card refused, and has ended the connection on its side.
bool IsRemoteRefusal(ibv_wc_status status);
// The peer did not answer.
bool IsPeerSilent(ibv_wc_status status);

}  // namespace rnicd::provider
