#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/ndk/registration.h"
#include "base/ntstatus.h"
#include "base/strong_id.h"
#include "base/units.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::core {

enum class RequestKind : uint8_t {
  kRegisterMr,
  kDeregisterMr,
  kCloseMr,
  kClosePd,
  kInitializeFastRegisterMr,
  kCloseCq,
  kCloseQp,
  kCloseMw,
  kConnect,
  kCompleteConnect,
  kAccept,
  kDisconnect,
  kCloseListener,
  kCloseConnector,
  kCloseSharedEndpoint,
};

// The completion of a request whose call returned STATUS_PENDING.
struct RequestCompleted {
  RequestKind kind = RequestKind::kRegisterMr;
  uint64_t request_context = 0;
  uint64_t object_id = 0;
  absl::Status status;
  // Set for a registration that succeeded.
  std::optional<Registration> registration;
  // The charge that bounds this queue, refunded when the completion is fetched: a registration's pending request, or
  // the slot of the closed object.
  std::shared_ptr<Charge> charge;
};

struct SessionEnding {
  EndCause cause = EndCause::kClosed;
};

// An armed completion queue has a completion, or is dead. Source: NDK_FN_CQ_NOTIFICATION_CALLBACK.
struct CqNotified {
  CompletionQueueId queue;
  uint64_t context = 0;
  NtStatus status = NtStatus::kSuccess;
};

// The peer of a queue pair disconnected or died.
struct QpDisconnected {
  QueuePairId queue_pair;
  uint64_t context = 0;
};

// A request has reached a listener, with a connector for it.
struct ConnectRequested {
  ListenerId listener;
  uint64_t context = 0;
  ConnectorId connector;
};

// The peer of a connector disconnected, or the connection broke.
struct ConnectorDisconnected {
  ConnectorId connector;
  uint64_t context = 0;
};

// The card of an adapter is gone.
struct AdapterRemoved {
  AdapterId adapter;
};

// Progress of a long allocation. Comes before the response of its call, or not at all.
struct MemoryProgress {
  // progress_context of the request.
  uint64_t context = 0;
  uint64_t populated_bytes = 0;
  // Bytes in all.
  uint64_t size = 0;
};

using EventBody = std::variant<RequestCompleted, SessionEnding, CqNotified, QpDisconnected, MemoryProgress,
                               ConnectRequested, ConnectorDisconnected, AdapterRemoved>;

struct Event {
  // Position in the stream; 1 for the first event fetched.
  uint64_t sequence = 0;
  EventBody body;
};

// An object whose event is made when it is fetched, so that it occupies at most one entry of the queue however often it
// signals.
class EventSource {
 public:
  virtual ~EventSource() = default;
  struct Taken {
    // The event; empty when the object has nothing left to report.
    std::optional<EventBody> body;
    // More is pending: the source goes to the end of the queue again.
    bool again = false;
  };
  virtual Taken TakeEvent() = 0;
};

// A session's events, in order, waiting for its one stream. Each is fetched once.
// Threads: safe. The wake-up is called without a lock held, from the thread that pushed; it must not block. Pop is for
// one thread at a time.
class EventQueue {
 public:
  void Push(EventBody body);
  // Queues the source, whose event is made when it is fetched. The caller must not push it again before that.
  void PushSource(std::shared_ptr<EventSource> source);
  // Removes the source's entry.
  void Withdraw(const EventSource& source);
  // Pushes `last`, and nothing after it. The session has ended, so the events in the queue are no longer charged.
  void Finish(SessionEnding last);

  // Attaches the stream. False when there is a stream already. Wakes at once when events wait.
  bool Attach(std::function<void()> wake_up);
  void Detach();
  std::optional<Event> Pop();
  // True when the last event has been fetched: the stream has ended.
  bool Drained() const;

 private:
  using Entry = std::variant<EventBody, std::shared_ptr<EventSource>>;

  void Append(Entry entry, bool last);
  std::optional<EventBody> PopBody();

  mutable Mutex mutex_;
  std::deque<Entry> entries_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_sequence_ RNICD_GUARDED_BY(mutex_) = 1;
  bool finished_ RNICD_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_up_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
