#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/cpp/pending_requests.h"
#include "client/cpp/queue_events.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::inline client {

// The session's event stream: completions of requests go to the PendingRequests, what happens to queues to the
// QueueEvents, the end of the session to a callback.
// Lifetime: holds itself from Start until gRPC is done with it; whoever holds it besides must keep it until Stop
//           has answered true, for it holds the channel, which may not die on a thread of gRPC's.
// Threads:  safe. Callbacks run on gRPC's threads, one at a time; there is no thread of our own.
// Source:   SessionService.WatchEvents.
class EventStream final : public grpc::ClientReadReactor<v1::WatchEventsResponse> {
 public:
  // The status says why the session ended: SESSION_ENDING with the cause as field, or a transport failure.
  using EndCallback = std::function<void(const absl::Status&)>;

  // Opens the stream on the stub's channel. `on_end` may be empty; it runs once, unless Stop came first.
  static std::shared_ptr<EventStream> Start(v1::SessionService::Stub& stub, std::shared_ptr<PendingRequests> pending,
                                            std::shared_ptr<QueueEvents> queue_events, EndCallback on_end);

  // From here on the end of the stream is expected and not reported.
  void ExpectEnd() { end_expected_ = true; }
  // Ends the stream and waits until gRPC is done with it, at most so long. True when it is; false also at once when
  // called from one of the stream's own callbacks. Idempotent.
  bool Stop(std::chrono::milliseconds wait_max);

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // Apart from the stream, so that gRPC's thread lets go of the stream before it says so: the last reference to a
  // channel must not be dropped there, since gRPC would wait for its own thread.
  struct Done {
    Mutex mutex;
    ConditionVariable changed;
    bool reached RNICD_GUARDED_BY(mutex) = false;
  };

  EventStream(std::shared_ptr<PendingRequests> pending, std::shared_ptr<QueueEvents> queue_events, EndCallback on_end)
      : pending_(std::move(pending)), queue_events_(std::move(queue_events)), on_end_(std::move(on_end)) {}

  // Constant after Start.
  const std::shared_ptr<PendingRequests> pending_;
  const std::shared_ptr<QueueEvents> queue_events_;
  const EndCallback on_end_;

  // Synchronise themselves.
  grpc::ClientContext context_;
  std::atomic<bool> end_expected_ = false;
  std::atomic<std::thread::id> callback_thread_;

  // Touched by gRPC and by callbacks only, which gRPC runs one after the other.
  v1::WatchEventsRequest request_;
  v1::WatchEventsResponse event_;
  absl::Status end_;
  std::shared_ptr<EventStream> self_;

  const std::shared_ptr<Done> done_ = std::make_shared<Done>();
};

}  // namespace rnicd::inline client
