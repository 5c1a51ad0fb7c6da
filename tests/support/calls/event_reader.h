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
#include "tests/support/calls/raw_client.h"

namespace rnicd::test {

// Reads a session's event stream in its own thread. When the constructor returns, the daemon has accepted or refused
// the stream.
// Lifetime: the destructor cancels the stream; the client must outlive this.
// Threads:  safe.
class EventReader {
 public:
  // `on_event`, when given, runs on the reading thread before the event can be fetched here.
  using Callback = std::function<void(const v1::WatchEventsResponse&)>;
  explicit EventReader(RawClient& client, Callback on_event = nullptr);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // The next unread event; nullopt on timeout or if the stream has ended.
  std::optional<v1::WatchEventsResponse> Next(std::chrono::milliseconds limit = kTimeout);
  // The next event, which must be a completion; otherwise a test failure and an empty message.
  v1::RequestCompleted NextCompletion();
  // All unread events up to the end of the stream. The list is complete only if the session has ended: a test that
  // asserts that no other event came closes the session first.
  std::vector<v1::WatchEventsResponse> RestUntilEnd();
  // The status of the stream; nullopt if it has not ended within `limit`.
  std::optional<CallOutcome> End(std::chrono::milliseconds limit = kTimeout);

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

// Number of completions with this context among the events.
int CountCompletions(const std::vector<v1::WatchEventsResponse>& events, uint64_t request_context);

}  // namespace rnicd::test
