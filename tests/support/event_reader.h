#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tests/support/raw_client.h"

namespace rnicd::test {

// Reads a session's event stream in a thread of its own. The stream stands, or is refused, when the constructor
// returns. Lifetime: cancels the stream when it goes; outlived by its client. Threads:  safe.
class EventReader {
 public:
  // `on_event`, when given, runs on the reading thread before the event can be fetched here.
  using Callback = std::function<void(const v1::WatchEventsResponse&)>;
  explicit EventReader(RawClient& client, Callback on_event = nullptr);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // The next event that was not fetched yet; nothing when none came in time or the stream is over.
  std::optional<v1::WatchEventsResponse> Next(std::chrono::milliseconds limit = kPatience);
  // The next event, which must be a completion; otherwise a test failure and an empty one.
  v1::RequestCompleted NextCompletion();
  // Every event up to the end of the stream. Only what follows the end of a session is complete: so a test that wants
  // to know that nothing else came closes the session first.
  std::vector<v1::WatchEventsResponse> RestUntilEnd();
  // How the stream ended; nothing when it has not ended in time.
  std::optional<CallOutcome> End(std::chrono::milliseconds limit = kPatience);

 private:
  void Run(const Callback& on_event);

  RawClient& client_;
  const std::unique_ptr<grpc::ClientContext> context_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<v1::WatchEventsResponse> events_ RNICD_GUARDED_BY(mutex_);
  bool stands_ RNICD_GUARDED_BY(mutex_) = false;
  std::optional<CallOutcome> end_ RNICD_GUARDED_BY(mutex_);
  std::thread thread_;
};

// How many completions with this context there are among the events.
int CountCompletions(const std::vector<v1::WatchEventsResponse>& events, uint64_t request_context);

}  // namespace rnicd::test
