#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/cpp/session/pending_requests.h"
#include "client/cpp/session/progress_watch.h"
#include "client/cpp/session/queue_events.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::inline client {

// The session's event stream: delivers completions of requests to the PendingRequests, queue events to the QueueEvents,
// progress to the ProgressWatch, and the end of the session to a callback.
// Lifetime: references itself from Start until gRPC is done with it; any other owner must keep it until Stop has
//           returned true, because it holds the channel, which must not be destroyed on a gRPC thread.
// Threads:  safe. Callbacks run on gRPC's threads, one at a time; the stream has no thread of its own.
// Source:   SessionService.WatchEvents.
class EventStream final : public grpc::ClientReadReactor<v1::WatchEventsResponse> {
 public:
  // The status is the reason why the session ended: SESSION_ENDING with the cause as field, or a transport failure.
  using EndCallback = std::function<void(const absl::Status&)>;

  // Opens the stream on the stub's channel. `on_end` may be empty; it runs once, unless Stop came first.
  static std::shared_ptr<EventStream> Start(v1::SessionService::Stub& stub, std::shared_ptr<PendingRequests> pending,
                                            std::shared_ptr<QueueEvents> queue_events,
                                            std::shared_ptr<ProgressWatch> progress, EndCallback on_end);

  // After this the end of the stream is expected and not reported.
  void ExpectEnd() { end_expected_ = true; }
  // Ends the stream and waits until gRPC is done with it, up to the timeout. Returns true when gRPC is done; false on
  // timeout, and at once when called from one of the stream's own callbacks. Idempotent.
  bool Stop(std::chrono::milliseconds wait_max);

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // Separate from the stream, so that gRPC's thread drops its reference to the stream before it signals the end: the
  // last reference to a channel must not be dropped on that thread, since gRPC would wait for its own thread.
  struct Done {
    Mutex mutex;
    ConditionVariable changed;
    bool reached RNICD_GUARDED_BY(mutex) = false;
  };

  EventStream(std::shared_ptr<PendingRequests> pending, std::shared_ptr<QueueEvents> queue_events,
              std::shared_ptr<ProgressWatch> progress, EndCallback on_end)
      : pending_(std::move(pending)),
        queue_events_(std::move(queue_events)),
        progress_(std::move(progress)),
        on_end_(std::move(on_end)) {}

  // Constant after Start.
  const std::shared_ptr<PendingRequests> pending_;
  const std::shared_ptr<QueueEvents> queue_events_;
  const std::shared_ptr<ProgressWatch> progress_;
  const EndCallback on_end_;

  // Synchronise themselves.
  grpc::ClientContext context_;
  std::atomic<bool> end_expected_ = false;
  std::atomic<std::thread::id> callback_thread_;

  // Used only by gRPC and by callbacks, which gRPC runs one after the other.
  v1::WatchEventsRequest request_;
  v1::WatchEventsResponse event_;
  absl::Status end_;
  std::shared_ptr<EventStream> self_;

  const std::shared_ptr<Done> done_ = std::make_shared<Done>();
};

}  // namespace rnicd::inline client
