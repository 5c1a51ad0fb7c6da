#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "daemon/core/queue/completion_queue.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// Longest time that a poll of a completion queue waits.
inline constexpr std::chrono::milliseconds kCqWaitMax{60'000};

// Result of a poll that may wait.
struct PolledCq {
  // Empty: the poll waits.
  std::optional<std::vector<Completion>> results;
  // Ends the wait without completions; does nothing once it has ended. Null when nothing waits.
  std::function<void()> end;
};

// A mapped queue to be created.
struct MappedCqArguments {
  AdapterId adapter;
  uint32_t depth = 0;
  // The consumer's context for notifications.
  uint64_t context = 0;
  // The highest depth that the queue can be resized to; 0: its depth.
  uint32_t depth_max = 0;
};

// A new mapped queue, and the tickets for its descriptors.
struct CreatedMappedCq {
  CompletionQueueId queue;
  uint64_t file_bytes = 0;
  FdTicket memory{};
  FdTicket pipe{};
};

// The completion queues of a session.
class SessionQueues final : public SessionObjects<CompletionQueueId, CompletionQueue> {
 public:
  // Ends the queue pairs of a dead queue.
  using OnOverrun = std::function<void(const std::shared_ptr<CompletionQueue>& queue)>;

  SessionQueues(SessionRequests& requests, const SessionAdapters& adapters, OnOverrun on_overrun)
      : SessionObjects(requests), adapters_(adapters.table()), on_overrun_(std::move(on_overrun)) {}

  absl::StatusOr<CompletionQueueId> Create(AdapterId id, uint32_t depth, uint64_t context);
  // A queue whose client reads the completions from shared memory. Errors: as Create; FIELD_OUT_OF_RANGE and
  // ABOVE_ADAPTER_LIMIT of mapped_depth_max, QUOTA_HEAP_BYTES, RINGS_UNAVAILABLE.
  absl::StatusOr<CreatedMappedCq> CreateMapped(const MappedCqArguments& arguments);
  absl::Status Resize(CompletionQueueId id, uint32_t depth);
  absl::Status Arm(CompletionQueueId id, CqNotifyType type);
  absl::StatusOr<std::vector<Completion>> GetResults(CompletionQueueId id, uint32_t max);
  // As GetResults, but where that returns none, waits for the first completion: up to `wait_max`, which is above 0 and
  // at most kCqWaitMax. An empty result means that it waits; `done` is then called once, without completions when the
  // time is over, and `end` may be called to stop the wait earlier. Does not delay the end of the session. Errors:
  // FIELD_OUT_OF_RANGE, QUOTA_PENDING_REQUESTS; of `done`: CQ_OVERRUN, OBJECT_CLOSING, SESSION_ENDING.
  absl::StatusOr<PolledCq> Poll(CompletionQueueId id, uint32_t max, std::chrono::milliseconds wait_max,
                                CqWait::Done done);
  // A descriptor of a mapped queue, for its owner. Errors: as CompletionQueue::Duplicate.
  absl::StatusOr<UniqueFd> Duplicate(CompletionQueueId id, SharedDescriptor which);
  MaybePending<> Close(CompletionQueueId id, PendingChoice choice, const Done<>& done);

 private:
  struct ChargedQueue {
    CompletionQueue::Options options;
    // Heap bytes of a mapped queue.
    Charge mapped;
  };

  // Charges a queue of this depth, and these heap bytes of a mapped one.
  absl::StatusOr<ChargedQueue> ChargeQueue(uint32_t depth, uint64_t mapped_bytes);
  // What ends the queue pairs of the queue.
  std::function<void()> OverrunOf(const std::shared_ptr<CompletionQueue>& queue);

  const SessionAdapters::Table& adapters_;
  const OnOverrun on_overrun_;
};

}  // namespace rnicd::core
