#pragma once

#include <functional>
#include <map>
#include <thread>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// Who wants to know what the event stream says about queues, by the id of the queue.
// Threads: safe. No handler runs under the lock.
class QueueEvents {
 public:
  // Called for each notification with ok, with CQ_OVERRUN or DEVICE_FAILED when the queue is dead, and once with the
  // status given to Close.
  using CqHandler = std::function<void(const absl::Status&)>;
  // Called at most once.
  using QpHandler = std::function<void()>;

  // To be called before the first ArmCq. Calls the handler at once when the stream has ended.
  void Watch(CompletionQueueId id, CqHandler handler);
  // To be called before anybody can know the queue pair's address.
  void Watch(QueuePairId id, QpHandler handler);
  // The handler may be called once more while this returns.
  void Forget(CompletionQueueId id);
  // Waits for this queue pair's handler when it is running on another thread; it is not called afterwards.
  void Forget(QueuePairId id);

  void Deliver(const v1::CqNotification& event);
  void Deliver(const v1::QpDisconnected& event);
  // No event follows. `why` must not be ok. The first call wins.
  void Close(const absl::Status& why);

 private:
  Mutex mutex_;
  std::map<CompletionQueueId, CqHandler> cq_handlers_ RNICD_GUARDED_BY(mutex_);
  std::map<QueuePairId, QpHandler> qp_handlers_ RNICD_GUARDED_BY(mutex_);
  absl::Status closed_ RNICD_GUARDED_BY(mutex_);
  // The queue pair whose handler runs now, and where. The stream delivers one event at a time.
  QueuePairId running_ RNICD_GUARDED_BY(mutex_);
  std::thread::id running_on_ RNICD_GUARDED_BY(mutex_);
  ConditionVariable handler_returned_;
};

}  // namespace rnicd::inline client
