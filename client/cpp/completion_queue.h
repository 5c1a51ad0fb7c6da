#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ndk/completion.h"
#include "base/strong_id.h"

namespace rnicd::inline client {

class Client;
class Connection;
class PairsOfQueue;

// What a completion queue is created with.
struct CompletionQueueOptions {
  // Maximum number of completions that can be queued; 1 to NdkAdapterInfo::max_cq_depth.
  uint32_t depth = 0;
  // Highest depth that Resize will be asked for; 0: `depth`. A queue in shared memory reserves room for it at once;
  // without shared memory it has no meaning.
  uint32_t depth_max = 0;
};

// The queue to which queue pairs report completed requests: an NDK completion queue.
//
// Lifetime: keeps the session. The destructor closes within ClientOptions::release_deadline; where queue pairs still
//           report here, the daemon closes it when the last of them is destroyed. A moved-from queue is closed and may
//           be destroyed or assigned.
//           With DataPath::kRings, and kAutomatic where the daemon can, completions come through memory that the daemon
//           and this process share: polling makes no call.
// Threads:  calls are safe from several threads at once; moving and destroying are not. A notification wakes one
//           waiting thread. Never wait in a callback of this library.
// Errors:   CQ_OVERRUN when more completions arrived than fit: this queue and its queue pairs are unusable then.
//           OBJECT_NOT_FOUND for a queue that is closed or moved from; transport failures.
// Source:   NDK_FN_CREATE_CQ, _ARM_CQ, _GET_CQ_RESULTS_EX, _RESIZE_CQ; NDK_FN_CQ_NOTIFICATION_CALLBACK.
class CompletionQueue {
 public:
  // Errors: FIELD_OUT_OF_RANGE, ABOVE_ADAPTER_LIMIT, QUOTA_COMPLETION_QUEUES, QUOTA_CQ_ENTRIES,
  // DEVICE_OUT_OF_RESOURCES; with DataPath::kRings also RINGS_UNAVAILABLE, QUOTA_HEAP_BYTES.
  static absl::StatusOr<CompletionQueue> Create(const Client& client, const CompletionQueueOptions& options);
  static absl::StatusOr<CompletionQueue> Create(const Client& client, uint32_t depth) {
    return Create(client, CompletionQueueOptions{.depth = depth});
  }

  CompletionQueue(CompletionQueue&&) noexcept = default;
  CompletionQueue& operator=(CompletionQueue&&) noexcept = default;

  // Id of the queue; 0 for one that is closed or moved from.
  CompletionQueueId id() const;

  // Moves queued completions, oldest first, to the front of `completions`, and returns how many. With shared memory it
  // allocates nothing.
  absl::StatusOr<size_t> Poll(std::span<Completion> completions);
  // The same as a vector: at most `max`, and at most 16384 in one call.
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max);
  // As Poll, but waits up to the timeout for the first completion. Empty on timeout. With shared memory this process
  // waits, at first busily for at most ClientOptions::spin_max. Without, the daemon does the waiting, at most a minute
  // in one call; where it does not (an older daemon, or too many pending requests in this session), the queue is armed
  // for any completion, and may stay armed.
  absl::StatusOr<size_t> PollFor(std::span<Completion> completions, std::chrono::milliseconds wait_max);
  absl::StatusOr<std::vector<Completion>> PollFor(uint32_t max, std::chrono::milliseconds wait_max);

  // For an event loop, which waits for the descriptor to become readable:
  //
  //     RNICD_ASSIGN_OR_RETURN(const bool may_sleep, queue.PrepareToWait());
  //     if (may_sleep) epoll_wait(...);
  //     queue.StopWaiting();
  //     // Poll until there are no more completions, and begin again.
  //
  // The descriptor stays the queue's: neither read nor close it. It may also become readable without a completion, and
  // stays so until the next StopWaiting or PrepareToWait. For one event loop; other threads may poll and wait at the
  // same time. Errors: RINGS_UNAVAILABLE for a queue without shared memory.
  absl::StatusOr<int> Descriptor();
  // True: the next completion, and a failure of the queue, make the descriptor readable. False: there are completions.
  // Errors: OBJECT_NOT_FOUND before Descriptor; why no completion will follow.
  absl::StatusOr<bool> PrepareToWait();
  // Completions do not make the descriptor readable any more: saves the daemon a system call for each.
  void StopWaiting();

  // Requests one notification. Arming again before it arrives combines the types: kAny wins over everything, kSolicited
  // over kErrors. The notification comes at once if there is a completion of that type newer than the last
  // notification.
  absl::Status Arm(CqNotifyType type);
  // Waits for a notification newer than the last one waited for. False on timeout. A Poll may already have taken the
  // completion that caused it. Further errors: SESSION_ENDING, or a transport failure, when none will come.
  absl::StatusOr<bool> WaitForNotification(std::chrono::milliseconds wait_max);

  // Keeps the queued completions. Errors: as Create; CQ_BACKLOG, DEVICE_NOT_CAPABLE; ABOVE_MAPPED_DEPTH above depth_max
  // for a queue in shared memory.
  absl::Status Resize(uint32_t depth);
  // Does what the destructor does and returns the outcome.
  absl::Status Close();

  // For QueuePair. Null when closed or moved from.
  std::shared_ptr<Connection> connection() const;
  std::shared_ptr<PairsOfQueue> pairs() const;

 private:
  struct Open;

  // One call, which may wait in the daemon.
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max, std::chrono::milliseconds wait);
  absl::StatusOr<std::vector<Completion>> PollMapped(uint32_t max, Instant deadline);

  explicit CompletionQueue(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
