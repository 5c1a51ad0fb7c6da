#pragma once

#include <functional>
#include <map>
#include <thread>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/ntstatus.h"
#include "base/strong_id.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// The failure of a completion queue that has failed with this status.
absl::Status QueueFailure(NtStatus status);

// Handlers of the event stream's queue events, keyed by queue id.
// Threads: safe. No handler runs under the lock.
class QueueEvents {
 public:
  // Called for each notification with ok, with CQ_OVERRUN or DEVICE_FAILED when the queue has failed, and once with the
  // status passed to Close.
  using CqHandler = std::function<void(const absl::Status&)>;
  // Called at most once.
  using QpHandler = std::function<void()>;

  // Call it before the first ArmCq. Calls the handler at once when the stream has ended.
  void Watch(CompletionQueueId id, CqHandler handler);
  // Call it before any peer can know the queue pair's address.
  void Watch(QueuePairId id, QpHandler handler);
  // The handler may still be called once while this returns.
  void Remove(CompletionQueueId id);
  // Waits for this queue pair's handler when it is running on another thread; it is not called afterwards.
  void Remove(QueuePairId id);

  void Deliver(const v1::CqNotification& event);
  void Deliver(const v1::QpDisconnected& event);
  // No event follows. `why` must not be ok. The first call wins.
  void Close(const absl::Status& why);

 private:
  Mutex mutex_;
  std::map<CompletionQueueId, CqHandler> cq_handlers_ RNICD_GUARDED_BY(mutex_);
  std::map<QueuePairId, QpHandler> qp_handlers_ RNICD_GUARDED_BY(mutex_);
  absl::Status closed_ RNICD_GUARDED_BY(mutex_);
  // The queue pair whose handler is running, and its thread. The stream delivers one event at a time.
  QueuePairId running_ RNICD_GUARDED_BY(mutex_);
  std::thread::id running_on_ RNICD_GUARDED_BY(mutex_);
  ConditionVariable handler_returned_;
};

}  // namespace rnicd::inline client
