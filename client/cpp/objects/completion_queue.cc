#include "client/cpp/completion_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/objects/mapped_queue.h"
#include "client/cpp/objects/request_counts.h"
#include "client/cpp/rings/shared_mapping.h"
#include "client/cpp/session/connection.h"
#include "client/cpp/transport_failure.h"
#include "wire/queue.h"

namespace rnicd::inline client {
namespace {

// As in one response of the daemon.
constexpr size_t kOnePollMax = 16384;

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
  }

  bool IsSet() {
    MutexLock lock(mutex_);
    return came_ || !failure_.ok();
  }

  // Whether a notification came. Errors: the failure.
  absl::StatusOr<bool> Take() {
    MutexLock lock(mutex_);
    if (!came_) {
      RNICD_RETURN_IF_ERROR(failure_);
    }
    return std::exchange(came_, false);
  }

 private:
  Mutex mutex_;
  bool came_ RNICD_GUARDED_BY(mutex_) = false;
  absl::Status failure_ RNICD_GUARDED_BY(mutex_);
};

v1::CreateCqRequest CreateRequest(AdapterId adapter, const CompletionQueueOptions& options) {
  v1::CreateCqRequest request;
  request.set_adapter_id(adapter.value);
  request.set_cq_depth(options.depth);
  request.set_mapped_depth_max(options.depth_max);
  return request;
}

// True for failures that a queue without mapping does not have.
bool IsFailureOfMapping(const absl::Status& status) {
  return FailedWith(status, ErrorReason::QUOTA_HEAP_BYTES) || FailedWith(status, ErrorReason::RINGS_UNAVAILABLE) ||
         FailedWith(status, ErrorReason::TICKET_UNKNOWN) || IsTransportFailure(status);
}

}  // namespace

// Id of the queue in the daemon.
struct CompletionQueue::Open {
  ~Open() {
    // In a child made by fork its lock is in any state.
    if (connection->CheckProcess().ok()) {
      connection->queue_events().Remove(id);
    }
    if (!closed && id != CompletionQueueId{}) {
      connection->Release(kCloseCq, CloseRequest(id));
    }
  }

  // Creates the queue in the daemon.
  absl::Status CreateAsWanted(const v1::CreateCqRequest& request);
  absl::Status CreateMapped(v1::CreateCqRequest request);
  absl::Status Create(const v1::CreateCqRequest& request, v1::CreateCqResponse* response);
  absl::Status Map(const v1::MappedCq& queue);
  // Waits for a notification of a queue that is not mapped. False on timeout.
  absl::StatusOr<bool> AwaitNotification(Instant deadline);
  // Receives the queue's events from now on.
  void Watch();
  // True if there are posts that a ring has lost; looks whether it has.
  bool LookForLost() const {
    (void)connection->DeliverLostPosts();
    return pairs->has_lost();
  }
  // As MappedQueue::PollUntil, with posts that a ring has lost behind what is in the memory. No deadline: does not
  // wait.
  absl::StatusOr<size_t> PollMapped(std::span<Completion> to, Instant deadline);

  std::shared_ptr<Connection> connection;
  CompletionQueueId id;
  bool closed = false;
  const std::shared_ptr<Notification> notification = std::make_shared<Notification>();
  // Null for a queue that is polled by calls.
  std::shared_ptr<MappedQueue> mapped;
  const std::shared_ptr<PairsOfQueue> pairs = std::make_shared<PairsOfQueue>();
};

absl::Status CompletionQueue::Open::Create(const v1::CreateCqRequest& request, v1::CreateCqResponse* response) {
  RNICD_ASSIGN_OR_RETURN(*response, connection->Call(kCreateCq, request));
  id = CompletionQueueId{response->cq_id()};
  return absl::OkStatus();
}

absl::Status CompletionQueue::Open::CreateMapped(v1::CreateCqRequest request) {
  request.set_mapped(true);
  v1::CreateCqResponse created;
  RNICD_RETURN_IF_ERROR(Create(request, &created));
  if (!created.has_mapped()) {  // An older daemon, without this field. The queue works by calls.
    return connection->options().data_path == DataPath::kRings ? MakeError(ErrorReason::RINGS_UNAVAILABLE)
                                                               : absl::OkStatus();
  }
  absl::Status status = Map(created.mapped());
  if (!status.ok()) {
    connection->Release(kCloseCq, CloseRequest(std::exchange(id, CompletionQueueId{})));
  }
  return status;
}

absl::Status CompletionQueue::Open::Map(const v1::MappedCq& queue) {
  const ClientOptions& options = connection->options();
  RNICD_ASSIGN_OR_RETURN(SharedMapping mapping,
                         SharedMapping::Fetch(connection->fd_socket_path(), queue.memory_ticket(), queue.file_bytes(),
                                              options.call_deadline));
  const auto daemon_cpu = [rings = connection->shared_rings()] { return rings->daemon_cpu(); };
  const auto fetch_pipe = [connection = connection.get(), ticket = queue.pipe_ticket()] {
    return QueuePipe::Fetch(connection->fd_socket_path(), ticket, connection->options().call_deadline);
  };
  const auto look_for_end = [connection = std::weak_ptr(connection), pairs = pairs] {
    if (const std::shared_ptr<Connection> open = connection.lock(); open != nullptr) {
      open->events().Poll();
      (void)open->DeliverLostPosts();
    }
    return pairs->has_lost();
  };
  RNICD_ASSIGN_OR_RETURN(mapped, MappedQueue::Open(std::move(mapping), {.spin_max = options.spin_max,
                                                                        .daemon_cpu = daemon_cpu,
                                                                        .fetch_pipe = fetch_pipe,
                                                                        .look_for_end = look_for_end}));
  return absl::OkStatus();
}

// Falls back to a queue without mapping where the session cannot have one, unless DataPath::kRings requires it.
absl::Status CompletionQueue::Open::CreateAsWanted(const v1::CreateCqRequest& request) {
  v1::CreateCqResponse ignored;
  const DataPath data_path = connection->options().data_path;
  if (data_path == DataPath::kCalls) {
    return Create(request, &ignored);
  }
  const absl::Status created = CreateMapped(request);
  return data_path == DataPath::kAutomatic && IsFailureOfMapping(created) ? Create(request, &ignored) : created;
}

void CompletionQueue::Open::Watch() {
  connection->queue_events().Watch(id, [notification = notification, mapped = mapped](const absl::Status& outcome) {
    if (mapped == nullptr) {
      notification->Set(outcome);
    } else if (!outcome.ok()) {
      mapped->End(outcome);
    }
  });
}

absl::StatusOr<bool> CompletionQueue::Open::AwaitNotification(Instant deadline) {
  connection->events().Await(deadline, [this] { return notification->IsSet(); });
  return notification->Take();
}

absl::StatusOr<CompletionQueue> CompletionQueue::Create(const Client& client, const CompletionQueueOptions& options) {
  const std::shared_ptr<Connection>& connection = client.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection->Adapter());
  const auto open = std::make_shared<Open>();
  open->connection = connection;
  RNICD_RETURN_IF_ERROR(open->CreateAsWanted(CreateRequest(adapter, options)));
  open->Watch();
  return CompletionQueue(open);
}

CompletionQueueId CompletionQueue::id() const { return open_ == nullptr ? CompletionQueueId{} : open_->id; }

absl::StatusOr<size_t> CompletionQueue::Poll(std::span<Completion> completions) {
  return PollFor(completions, std::chrono::milliseconds(0));
}

absl::StatusOr<size_t> CompletionQueue::PollFor(std::span<Completion> completions, std::chrono::milliseconds wait_max) {
  if (open_ != nullptr && open_->mapped != nullptr) {
    return open_->PollMapped(completions, wait_max.count() == 0 ? Instant() : DeadlineAfter(wait_max));
  }
  RNICD_ASSIGN_OR_RETURN(const std::vector<Completion> polled,
                         PollFor(static_cast<uint32_t>(std::min(completions.size(), kOnePollMax)), wait_max));
  std::ranges::copy(polled, completions.begin());
  return polled.size();
}

absl::StatusOr<size_t> CompletionQueue::Open::PollMapped(std::span<Completion> to, Instant deadline) {
  size_t count = 0;
  do {
    RNICD_ASSIGN_OR_RETURN(count, deadline == Instant() ? mapped->Poll(to) : mapped->PollUntil(to, deadline));
    if (count == 0 && pairs->has_lost()) {
      // What was flushed before it is in the memory by now.
      RNICD_ASSIGN_OR_RETURN(count, mapped->Poll(to));
      count = count == 0 ? pairs->TakeLost(to) : count;
    }
  } while (count == 0 && !to.empty() && deadline != Instant() && Instant::clock::now() < deadline);
  pairs->OnCompletions(to.first(count));
  return count;
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::PollMapped(uint32_t max, Instant deadline) {
  std::array<Completion, 32> some;
  std::vector<Completion> completions;
  const std::span<Completion> first = std::span(some).first(std::min<size_t>(max, some.size()));
  RNICD_ASSIGN_OR_RETURN(size_t count, open_->PollMapped(first, deadline));
  while (count != 0) {
    completions.insert(completions.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(count));
    const size_t room = std::min<size_t>(max, kOnePollMax) - completions.size();
    // A failure is left to the next poll: these completions came before it.
    count = open_->PollMapped(std::span(some).first(std::min(room, some.size())), {}).value_or(0);
  }
  return completions;
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::Poll(uint32_t max) {
  if (open_ != nullptr && open_->mapped != nullptr) {
    return PollMapped(max, {});
  }
  return Poll(max, std::chrono::milliseconds(0));
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::Poll(uint32_t max, std::chrono::milliseconds wait) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  // Looked for first: what was flushed before it comes with this call.
  const bool has_lost = open_->LookForLost();
  v1::GetCqResultsExRequest request;
  request.set_cq_id(open_->id.value);
  request.set_max_results(max);
  request.set_wait_ms(static_cast<uint32_t>(wait.count()));
  RNICD_ASSIGN_OR_RETURN(const v1::GetCqResultsExResponse response,
                         open_->connection->Call(kGetCqResultsEx, request, wait));
  std::vector<Completion> completions;
  completions.reserve(static_cast<size_t>(response.results_size()));
  for (const v1::CqResultEx& result : response.results()) {
    completions.push_back(wire::FromWire(result));
  }
  if (completions.empty() && has_lost) {
    completions.resize(std::min<size_t>(max, kOnePollMax));
    completions.resize(open_->pairs->TakeLost(completions));
  }
  open_->pairs->OnCompletions(completions);
  return completions;
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::PollFor(uint32_t max, std::chrono::milliseconds wait_max) {
  const Instant deadline = DeadlineAfter(wait_max);
  if (open_ != nullptr && open_->mapped != nullptr) {
    return PollMapped(max, deadline);
  }
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
    RNICD_ASSIGN_OR_RETURN(const bool notified, open_->AwaitNotification(deadline));
    if (!notified) {
      return Poll(max);
    }
  }
}

absl::Status CompletionQueue::Arm(CqNotifyType type) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  if (const auto armed = open_->connection->rings().Arm(open_->id, type); armed.has_value()) {
    return *armed;
  }
  v1::ArmCqRequest request;
  request.set_cq_id(open_->id.value);
  request.set_type(wire::ToWire(type));
  return open_->connection->Call(kArmCq, request).status();
}

absl::StatusOr<bool> CompletionQueue::WaitForNotification(std::chrono::milliseconds wait_max) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  const Instant deadline = DeadlineAfter(wait_max);
  return open_->mapped != nullptr ? open_->mapped->WaitForNotification(deadline) : open_->AwaitNotification(deadline);
}

absl::StatusOr<int> CompletionQueue::Descriptor() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  return open_->mapped != nullptr ? open_->mapped->Descriptor() : MakeError(ErrorReason::RINGS_UNAVAILABLE);
}

absl::StatusOr<bool> CompletionQueue::PrepareToWait() {
  if (open_ == nullptr || open_->mapped == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  if (open_->connection->CheckProcess().ok() && open_->LookForLost()) {
    return false;
  }
  return open_->mapped->PrepareToWait();
}

void CompletionQueue::StopWaiting() {
  if (open_ != nullptr && open_->mapped != nullptr) {
    open_->mapped->StopWaiting();
  }
}

absl::Status CompletionQueue::Resize(uint32_t depth) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::ResizeCqRequest request;
  request.set_cq_id(open_->id.value);
  request.set_cq_depth(depth);
  return open_->connection->Call(kResizeCq, request).status();
}

absl::Status CompletionQueue::Close() { return CloseNow(open_, kCloseCq, CloseRequest); }

std::shared_ptr<Connection> CompletionQueue::connection() const {
  return open_ == nullptr ? nullptr : open_->connection;
}

std::shared_ptr<PairsOfQueue> CompletionQueue::pairs() const { return open_ == nullptr ? nullptr : open_->pairs; }

}  // namespace rnicd::inline client
