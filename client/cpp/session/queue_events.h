#pragma once

#include <functional>
#include <map>
#include <thread>
#include <variant>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/ntstatus.h"
#include "base/strong_id.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// The failure of a completion queue that has failed with this status.
absl::Status QueueFailure(NtStatus status);

// What has one peer.
using EndId = std::variant<QueuePairId, ConnectorId>;

// Handlers of the event stream's queue events, and of disconnections, keyed by id.
// Threads: safe. No handler runs under the lock.
class QueueEvents {
 public:
  // Called for each notification with ok, with CQ_OVERRUN or DEVICE_FAILED when the queue has failed, and once with the
  // status passed to Close.
  using CqHandler = std::function<void(const absl::Status&)>;
  // Called at most once.
  using EndHandler = std::function<void()>;

  // Call it before the first ArmCq. Calls the handler at once when the stream has ended.
  void Watch(CompletionQueueId id, CqHandler handler);
  // Call it before any peer can know the queue pair's address, or before the connector has one.
  void Watch(EndId id, EndHandler handler);
  // The handler may still be called once while this returns.
  void Remove(CompletionQueueId id);
  // Waits for this end's handler when it is running on another thread; it is not called afterwards.
  void Remove(EndId id);

  void Deliver(const v1::CqNotification& event);
  void Deliver(const v1::QpDisconnected& event) { Disconnected(QueuePairId{event.qp_id()}); }
  void Deliver(const v1::DisconnectEvent& event) { Disconnected(ConnectorId{event.connector_id()}); }
  // No event follows. `why` must not be ok. The first call wins.
  void Close(const absl::Status& why);

 private:
  void Disconnected(EndId id);

  Mutex mutex_;
  std::map<CompletionQueueId, CqHandler> cq_handlers_ RNICD_GUARDED_BY(mutex_);
  std::map<EndId, EndHandler> end_handlers_ RNICD_GUARDED_BY(mutex_);
  absl::Status closed_ RNICD_GUARDED_BY(mutex_);
  // Whose handler is running, and its thread. The stream delivers one event at a time.
  EndId running_ RNICD_GUARDED_BY(mutex_);
  std::thread::id running_on_ RNICD_GUARDED_BY(mutex_);
  ConditionVariable handler_returned_;
};

}  // namespace rnicd::inline client
