#include "daemon/core/queue/session_queues.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {
namespace {

absl::Status CheckDepth(uint32_t depth, const Adapter& adapter) {
  if (depth == 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth");
  }
  return depth > adapter.info().max_cq_depth ? MakeError(ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth")
                                             : absl::OkStatus();
}

absl::Status CheckMappedDepthMax(uint32_t depth_max, uint32_t depth, const Adapter& adapter) {
  if (depth_max < depth) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "mapped_depth_max");
  }
  const uint32_t most = adapter.info().max_cq_depth;
  if (depth_max > most) {
    return MakeError(ErrorInfo{.reason = ErrorReason::ABOVE_ADAPTER_LIMIT,
                               .field = "mapped_depth_max",
                               .limit = most,
                               .requested = depth_max});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionQueueId> SessionQueues::Create(AdapterId id, uint32_t depth, uint64_t context) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, id, "adapter_id"));
  RNICD_RETURN_IF_ERROR(CheckDepth(depth, *adapter));
  RNICD_ASSIGN_OR_RETURN(ChargedQueue charged, ChargeQueue(depth, 0));
  charged.options.context = context;
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue,
                         CompletionQueue::Create(std::move(adapter), std::move(charged.options), lease_.events()));
  const CompletionQueueId queue_id = table_.Insert(queue);
  queue->Publish(queue_id, OverrunOf(queue));
  return queue_id;
}

absl::StatusOr<CreatedMappedCq> SessionQueues::CreateMapped(const MappedCqArguments& arguments) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, arguments.adapter, "adapter_id"));
  RNICD_RETURN_IF_ERROR(CheckDepth(arguments.depth, *adapter));
  const uint32_t depth_max = arguments.depth_max == 0 ? arguments.depth : arguments.depth_max;
  RNICD_RETURN_IF_ERROR(CheckMappedDepthMax(depth_max, arguments.depth, *adapter));
  const uint64_t file_bytes = MappedResults::FileBytes(depth_max);
  // Refund memory that has ended meanwhile, to make room.
  node_.lingering.Sweep();
  RNICD_ASSIGN_OR_RETURN(ChargedQueue charged,
                         ChargeQueue(arguments.depth, OccupiedBytes(node_.os, file_bytes) + kHeapOfMappedQueue));
  CompletionQueue::Options options = std::move(charged.options);
  options.context = arguments.context;
  RNICD_ASSIGN_OR_RETURN(options.mapped,
                         MappedResults::Create(node_.os, node_.lingering, depth_max, std::move(charged.mapped)));
  options.mapped_depth_max = depth_max;
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue,
                         CompletionQueue::Create(std::move(adapter), std::move(options), lease_.events()));
  const CompletionQueueId id = table_.Insert(queue);
  const auto issue = [&](SharedDescriptor which) {
    return node_.tickets.Issue({.session = lease_.weak_from_this(),
                                .object = QueueDescriptor{.queue = id, .which = which},
                                .direction = FdDirection::kToClient,
                                .process = lease_.owner().process});
  };
  const CreatedMappedCq created{.queue = id,
                                .file_bytes = file_bytes,
                                .memory = issue(SharedDescriptor::kMemory),
                                .pipe = issue(SharedDescriptor::kPipe)};
  queue->Publish(id, OverrunOf(queue),
                 {OwnedTicket(node_.tickets, created.memory), OwnedTicket(node_.tickets, created.pipe)});
  return created;
}

absl::StatusOr<SessionQueues::ChargedQueue> SessionQueues::ChargeQueue(uint32_t depth, uint64_t mapped_bytes) {
  RNICD_ASSIGN_OR_RETURN(auto charges, Charge::TakeAll(ledger_, {{Resource::kCompletionQueues, 1},
                                                                 {Resource::kCqEntries, depth},
                                                                 {Resource::kHeapBytes, mapped_bytes}}));
  ChargedQueue queue;
  queue.options.depth = depth;
  queue.options.charge = std::make_shared<Charge>(std::move(charges[0]));
  queue.options.entries = std::move(charges[1]);
  queue.mapped = std::move(charges[2]);
  return queue;
}

std::function<void()> SessionQueues::OverrunOf(const std::shared_ptr<CompletionQueue>& queue) {
  const std::weak_ptr<CompletionQueue> weak_queue = queue;
  return [this, weak = lease_.weak_from_this(), weak_queue] {
    const std::shared_ptr<Lease> self = weak.lock();
    const std::shared_ptr<CompletionQueue> dead = weak_queue.lock();
    if (self != nullptr && dead != nullptr) {
      on_overrun_(dead);
    }
  };
}

absl::Status SessionQueues::Resize(CompletionQueueId id, uint32_t depth) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(table_, id, "cq_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, queue->Acquire());
  if ((queue->adapter().info().adapter_flags & kAdapterFlagCqResize) == 0) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  RNICD_RETURN_IF_ERROR(CheckDepth(depth, queue->adapter()));
  return queue->Resize(depth);
}

absl::Status SessionQueues::Arm(CompletionQueueId id, CqNotifyType type) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(table_, id, "cq_id"));
  queue->Arm(type);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> SessionQueues::GetResults(CompletionQueueId id, uint32_t max) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(table_, id, "cq_id"));
  return queue->Take(max);
}

absl::StatusOr<PolledCq> SessionQueues::Poll(CompletionQueueId id, uint32_t max, std::chrono::milliseconds wait_max,
                                             CqWait::Done done) {
  if (wait_max > kCqWaitMax) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "wait_ms");
  }
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(table_, id, "cq_id"));
  RNICD_ASSIGN_OR_RETURN(std::vector<Completion> queued, queue->Take(max));
  if (!queued.empty() || max == 0 || wait_max.count() == 0) {
    return PolledCq{.results = std::move(queued)};
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kPendingRequests));
  const auto wait = std::make_shared<CqWait>();
  const std::function<void()> end = [weak_queue = std::weak_ptr<CompletionQueue>(queue), wait] {
    if (const std::shared_ptr<CompletionQueue> open = weak_queue.lock(); open != nullptr) {
      open->EndWait(wait);
    }
  };
  // Set before the queue has the wait, so that `done` finds it. If it rings before, TakeOrWait returns at once.
  Alarms& alarms = node_.alarms;
  const Alarms::Key alarm = alarms.Set(wait_max, end);
  wait->max = max;
  wait->done = [&alarms, alarm, charge = std::move(charge), done = std::move(done)](const auto& outcome) {
    alarms.Cancel(alarm);
    charge->Refund();
    return done(outcome);
  };
  auto taken = queue->TakeOrWait(wait);
  if (taken.ok() && !taken->has_value()) {
    return PolledCq{.end = end};
  }
  alarms.Cancel(alarm);
  RNICD_RETURN_IF_ERROR(taken.status());
  return PolledCq{.results = *std::move(taken)};
}

absl::StatusOr<UniqueFd> SessionQueues::Duplicate(CompletionQueueId id, SharedDescriptor which) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(table_, id, "cq_id"));
  return queue->Duplicate(which);
}

MaybePending<> SessionQueues::Close(CompletionQueueId id, PendingChoice choice, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(table_, id, "cq_id"));
  return CloseThenRemove(id, *queue, ReportClose(RequestKind::kCloseCq, id, choice, *queue, done));
}

}  // namespace rnicd::core
