#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ntstatus.h"
#include "base/operation_type.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::inline client {

class Client;
class Connection;

// What a completion queue is armed for. The numbers are NDK's.
enum class CqNotifyType : uint32_t {
  // Only failures of the queue itself.
  kErrors = 0,
  // Any completion.
  kAny = 1,
  // A receive that was sent with kOpFlagSolicit, and any completion that failed.
  kSolicited = 2,
};

// The end of one posted request. Source: NDK_RESULT_EX.
struct Completion {
  // kSuccess, kCancelled when the request was flushed, or why it failed. After a failure the queue pair is dead.
  NtStatus status = NtStatus::kSuccess;
  OperationType type = OperationType::kSend;
  // Bytes received; of receives that succeeded only.
  uint32_t bytes = 0;
  // As given in QueuePairOptions.
  uint64_t qp_context = 0;
  // As given in RequestOptions.
  uint64_t request_context = 0;
  // With kReceiveAndInvalidate: the token of this session's that the sender had invalidated. Otherwise 0.
  RemoteToken invalidated_token;

  bool ok() const { return status == NtStatus::kSuccess; }
};

// Where the requests of queue pairs report their end: an NDK completion queue.
//
// Lifetime: keeps the session. The destructor closes within ClientOptions::release_deadline; where queue pairs still
//           report here, the daemon closes it when the last of them is gone. A moved-from queue is closed and may be
//           destroyed or assigned.
// Threads:  calls are safe from several threads at once; moving and destroying are not. A notification is given to one
//           of the threads that wait. Never wait in a callback of this library.
// Errors:   CQ_OVERRUN when more completions came than fit: this queue and its queue pairs are dead then.
//           OBJECT_NOT_FOUND for a queue that is closed or moved from; transport failures.
// Source:   NDK_FN_CREATE_CQ, _ARM_CQ, _GET_CQ_RESULTS_EX, _RESIZE_CQ; NDK_FN_CQ_NOTIFICATION_CALLBACK.
class CompletionQueue {
 public:
  // `depth` is the most completions that wait here; 1 to NdkAdapterInfo::max_cq_depth. Errors: FIELD_OUT_OF_RANGE,
  // ABOVE_ADAPTER_LIMIT, QUOTA_COMPLETION_QUEUES, QUOTA_CQ_ENTRIES, DEVICE_OUT_OF_RESOURCES.
  static absl::StatusOr<CompletionQueue> Create(const Client& client, uint32_t depth);

  CompletionQueue(CompletionQueue&&) noexcept = default;
  CompletionQueue& operator=(CompletionQueue&&) noexcept = default;

  // 0 for one that is closed or moved from.
  CompletionQueueId id() const;

  // Takes what is there, oldest first, at most `max`; not more than 16384 at a time.
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max);
  // Likewise; waits so long for the first one. Arms the queue for any completion while it waits, and may leave it so.
  // Nothing when the time is over.
  absl::StatusOr<std::vector<Completion>> PollFor(uint32_t max, std::chrono::milliseconds wait_max);

  // Asks for one notification. Arming again before it comes combines the types: kAny wins over everything, kSolicited
  // over kErrors. It comes at once for a completion of that type that is newer than the last notification.
  absl::Status Arm(CqNotifyType type);
  // Waits for a notification since the last one that was waited for. False when the time is over. What it was for may
  // have been taken by a Poll meanwhile. Errors besides: SESSION_ENDING, or a transport failure, when none will come.
  absl::StatusOr<bool> WaitForNotification(std::chrono::milliseconds wait_max);

  // Keeps what is queued. Errors: as Create; CQ_BACKLOG, DEVICE_NOT_CAPABLE.
  absl::Status Resize(uint32_t depth);
  // What the destructor does, with its outcome.
  absl::Status Close();

  // For QueuePair. Null when closed or moved from.
  std::shared_ptr<Connection> connection() const;

 private:
  struct Open;

  explicit CompletionQueue(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
