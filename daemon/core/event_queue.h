#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/units.h"
#include "daemon/core/ledger.h"
#include "daemon/core/observer.h"

namespace rnicd::core {

// A finished registration, as its owner sees it.
struct Registration {
  VirtualAddress base;
  uint64_t length = 0;
  LocalToken local_token;
  RemoteToken remote_token;
};

enum class RequestKind : uint8_t { kRegisterMr, kDeregisterMr, kCloseMr, kClosePd };

// The completion of a request that was answered with STATUS_PENDING.
struct RequestCompleted {
  RequestKind kind = RequestKind::kRegisterMr;
  uint64_t request_context = 0;
  uint64_t object_id = 0;
  absl::Status status;
  // Set for a registration that succeeded.
  std::optional<Registration> registration;
  // What bounds this queue: given back when the completion is fetched. A registration's pending request, or the slot
  // of the object that was closed.
  std::shared_ptr<Charge> charge;
};

struct SessionEnding {
  EndCause cause = EndCause::kClosed;
};

struct Event {
  uint64_t sequence = 0;
  std::variant<RequestCompleted, SessionEnding> body;
};

// A session's events, in order, waiting for its one stream. Each is fetched once.
// Threads: safe. The wake-up is called without a lock held, from the thread that pushed; it must not block.
class EventQueue {
 public:
  void Push(std::variant<RequestCompleted, SessionEnding> body);
  // Pushes `last`, and nothing after it. The session is gone, so what waits here is no longer charged to anyone.
  void Finish(SessionEnding last);

  // The stream's end. False when there is a stream already. Wakes at once when events wait.
  bool Attach(std::function<void()> wake_up);
  void Detach();
  std::optional<Event> Pop();
  // True when the last event has been fetched: the stream is over.
  bool Drained() const;

 private:
  void Append(std::variant<RequestCompleted, SessionEnding> body, bool last);

  mutable Mutex mutex_;
  std::deque<Event> events_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_sequence_ RNICD_GUARDED_BY(mutex_) = 1;
  bool finished_ RNICD_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_up_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
