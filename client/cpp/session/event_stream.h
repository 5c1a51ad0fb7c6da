#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/session/connection_events.h"
#include "client/cpp/session/event_descriptor.h"
#include "client/cpp/session/pending_requests.h"
#include "client/cpp/session/progress_watch.h"
#include "client/cpp/session/queue_events.h"

namespace rnicd::inline client {

// When a wait that begins now ends. The longest is a year, which no clock overflows.
inline Instant DeadlineAfter(std::chrono::milliseconds wait_max) {
  constexpr std::chrono::hours kLongest{24 * 365};
  return Instant::clock::now() + std::min<std::chrono::milliseconds>(wait_max, kLongest);
}

// The session's event stream. Each thread that calls the daemon, or waits for it, takes what has come: queues and rings
// hear of it at once. What calls back into the program waits for the one who may: the stream's thread, which starts
// with the first callback, or the caller of Progress.
// Lifetime: its thread keeps it.
// Threads:  safe. Callbacks of the program run one at a time.
// Source:   SessionService.WatchEvents.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  struct Options {
    // Called once, before callbacks hear of the end. The status is the reason why the session ended: SESSION_ENDING
    // with the cause as field, or a transport failure.
    std::function<void(const absl::Status&)> end_rings;
    // A callback of the program, called once unless Stop came first. May be empty.
    std::function<void(const absl::Status&)> on_end;
    // A callback of the program, for the one adapter of its session. May be empty.
    std::function<void()> on_adapter_removed;
    // Closes the connector of a request that nobody takes any more. May wait for the daemon.
    std::function<void(ConnectorId)> close_request;
    // Callbacks run in Progress, and there is no thread.
    bool by_progress = false;
  };
  // Where what has come goes.
  struct Receivers {
    std::shared_ptr<PendingRequests> pending = std::make_shared<PendingRequests>();
    std::shared_ptr<QueueEvents> queues = std::make_shared<QueueEvents>();
    std::shared_ptr<ConnectionEvents> connections = std::make_shared<ConnectionEvents>();
    std::shared_ptr<ProgressWatch> progress = std::make_shared<ProgressWatch>();
  };

  // Opens the stream on the channel.
  static std::shared_ptr<EventStream> Open(std::shared_ptr<Channel> channel, Receivers receivers, Options options);
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream();

  // To be called before a callback of the program is registered.
  void ExpectCallbacks();
  // Takes what has come.
  void Take();
  // The same; looks at the connection first.
  void Poll();
  // Takes what comes, until `done` or the deadline, when it is false.
  bool Await(Instant deadline, absl::FunctionRef<bool()> done);
  // Runs the callbacks that are due; waits for the first, up to the deadline. Only with `by_progress`; one thread at a
  // time.
  void Progress(Instant deadline);
  // Becomes readable when Progress has something to do; may be so without. Errors: a transport failure without
  // descriptors.
  absl::StatusOr<int> Descriptor();

  // After this the end of the stream is expected and not reported.
  void ExpectEnd() { end_expected_ = true; }
  // Ends the connection and waits for the stream's thread, up to the timeout; not at all on that thread. Idempotent.
  void Stop(std::chrono::milliseconds wait_max);

 private:
  EventStream(std::shared_ptr<Channel> channel, Receivers receivers, Options options)
      : channel_(std::move(channel)), receivers_(std::move(receivers)), options_(std::move(options)) {}

  void Run();
  void TakeOne(const std::string& message) RNICD_REQUIRES(mutex_);
  // Delivers what those who wait want at once. True: nothing calls back.
  bool DeliverAtOnce(const v1::WatchEventsResponse& event) RNICD_REQUIRES(mutex_);
  void TakeEnd(const absl::Status& why) RNICD_REQUIRES(mutex_);
  // Runs the callbacks that are due, on this thread.
  void RunDue();
  void CallBack(const v1::WatchEventsResponse& event);
  void ReportEnd();

  const std::shared_ptr<Channel> channel_;
  const Receivers receivers_;
  const Options options_;
  std::atomic<bool> end_expected_ = false;

  Mutex mutex_;
  // Events that call back, and whether the end is due after them.
  std::deque<v1::WatchEventsResponse> due_ RNICD_GUARDED_BY(mutex_);
  bool end_due_ RNICD_GUARDED_BY(mutex_) = false;
  // Why the session has ended, or will; ok while it goes on.
  absl::Status end_ RNICD_GUARDED_BY(mutex_);
  bool ended_ RNICD_GUARDED_BY(mutex_) = false;
  EventDescriptor descriptor_ RNICD_GUARDED_BY(mutex_);
  std::thread thread_ RNICD_GUARDED_BY(mutex_);
  bool thread_ended_ RNICD_GUARDED_BY(mutex_) = false;
  ConditionVariable changed_;
};

}  // namespace rnicd::inline client
