#include "client/cpp/completion_queue.h"

#include <algorithm>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/connection.h"
#include "wire/queue.h"

namespace rnicd::inline client {
namespace {

// Effectively no deadline, without overflowing any clock.
constexpr std::chrono::hours kWaitMax{24 * 365};

Instant DeadlineAfter(std::chrono::milliseconds wait_max) {
  return Instant::clock::now() + std::min<std::chrono::milliseconds>(wait_max, kWaitMax);
}

// Milliseconds until the deadline, as much as the daemon waits in one call.
std::chrono::milliseconds WaitOfOneCall(Instant deadline) {
  constexpr std::chrono::milliseconds kOneCallMax{60'000};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), kOneCallMax);
}

// Pending is fine: the daemon closes the queue when its last queue pair is destroyed, and nothing waits for that event.
v1::CloseCqRequest CloseRequest(CompletionQueueId id) {
  v1::CloseCqRequest request;
  request.set_cq_id(id.value);
  request.set_allow_pending(true);
  return request;
}

// The pending notification, which no thread has waited for yet. Separate from the queue, because the event stream keeps
// it alive.
class Notification {
 public:
  // ok for a notification; a failure is final.
  void Set(const absl::Status& outcome) {
    MutexLock lock(mutex_);
    if (outcome.ok()) {
      came_ = true;
    } else {
      failure_.Update(outcome);
    }
    changed_.NotifyAll();
  }

  absl::StatusOr<bool> Take(Instant deadline) {
    MutexLock lock(mutex_);
    while (!came_ && failure_.ok() && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (came_) {
      came_ = false;
      return true;
    }
    RNICD_RETURN_IF_ERROR(failure_);
    return false;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool came_ RNICD_GUARDED_BY(mutex_) = false;
  absl::Status failure_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace

// Id of the queue in the daemon.
struct CompletionQueue::Open {
  ~Open() {
    connection->queue_events().Remove(id);
    if (!closed) {
      connection->Release(&v1::QueueService::Stub::CloseCq, CloseRequest(id));
    }
  }

  std::shared_ptr<Connection> connection;
  CompletionQueueId id;
  bool closed = false;
  const std::shared_ptr<Notification> notification = std::make_shared<Notification>();
};

absl::StatusOr<CompletionQueue> CompletionQueue::Create(const Client& client, uint32_t depth) {
  const std::shared_ptr<Connection>& connection = client.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection->Adapter());
  v1::CreateCqRequest request;
  request.set_adapter_id(adapter.value);
  request.set_cq_depth(depth);
  RNICD_ASSIGN_OR_RETURN(const v1::CreateCqResponse response,
                         connection->Call(&v1::QueueService::Stub::CreateCq, request));
  const auto open = std::make_shared<Open>();
  open->connection = connection;
  open->id = CompletionQueueId{response.cq_id()};
  connection->queue_events().Watch(
      open->id, [notification = open->notification](const absl::Status& outcome) { notification->Set(outcome); });
  return CompletionQueue(open);
}

CompletionQueueId CompletionQueue::id() const { return open_ == nullptr ? CompletionQueueId{} : open_->id; }

absl::StatusOr<std::vector<Completion>> CompletionQueue::Poll(uint32_t max) {
  return Poll(max, std::chrono::milliseconds(0));
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::Poll(uint32_t max, std::chrono::milliseconds wait) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::GetCqResultsExRequest request;
  request.set_cq_id(open_->id.value);
  request.set_max_results(max);
  request.set_wait_ms(static_cast<uint32_t>(wait.count()));
  RNICD_ASSIGN_OR_RETURN(const v1::GetCqResultsExResponse response,
                         open_->connection->Call(&v1::QueueService::Stub::GetCqResultsEx, request, wait));
  std::vector<Completion> completions;
  completions.reserve(static_cast<size_t>(response.results_size()));
  for (const v1::CqResultEx& result : response.results()) {
    completions.push_back(wire::FromWire(result));
  }
  return completions;
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::PollFor(uint32_t max, std::chrono::milliseconds wait_max) {
  const Instant deadline = DeadlineAfter(wait_max);
  for (;;) {
    absl::StatusOr<std::vector<Completion>> completions = Poll(max, WaitOfOneCall(deadline));
    if (FailedWith(completions.status(), ErrorReason::QUOTA_PENDING_REQUESTS)) {
      completions = Poll(max);
    }
    if (!completions.ok() || !completions->empty() || Instant::clock::now() >= deadline) {
      return completions;
    }
    // A completion that arrives between the poll and the arming is newer than the last notification, so it notifies at
    // once.
    RNICD_RETURN_IF_ERROR(Arm(CqNotifyType::kAny));
    RNICD_ASSIGN_OR_RETURN(const bool notified, open_->notification->Take(deadline));
    if (!notified) {
      return Poll(max);
    }
  }
}

absl::Status CompletionQueue::Arm(CqNotifyType type) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::ArmCqRequest request;
  request.set_cq_id(open_->id.value);
  request.set_type(wire::ToWire(type));
  return open_->connection->Call(&v1::QueueService::Stub::ArmCq, request).status();
}

absl::StatusOr<bool> CompletionQueue::WaitForNotification(std::chrono::milliseconds wait_max) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  return open_->notification->Take(DeadlineAfter(wait_max));
}

absl::Status CompletionQueue::Resize(uint32_t depth) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::ResizeCqRequest request;
  request.set_cq_id(open_->id.value);
  request.set_cq_depth(depth);
  return open_->connection->Call(&v1::QueueService::Stub::ResizeCq, request).status();
}

absl::Status CompletionQueue::Close() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_RETURN_IF_ERROR(open_->connection->Call(&v1::QueueService::Stub::CloseCq, CloseRequest(open_->id)).status());
  open_->closed = true;
  open_.reset();
  return absl::OkStatus();
}

std::shared_ptr<Connection> CompletionQueue::connection() const {
  return open_ == nullptr ? nullptr : open_->connection;
}

}  // namespace rnicd::inline client
