#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/core/request/session_guard.h"
#include "daemon/core/request/session_requests.h"

namespace rnicd::core {

// The items of one request.
struct ItemPlan {
  uint32_t items = 0;
  // Pieces that may be done at the same time; at least 1.
  uint32_t threads = 1;
  // Bytes that an item has registered or deregistered; null: hardly any.
  std::function<uint64_t(uint32_t index)> bytes_of;
  // Does the items [first, end), in order, and calls `then` at the end, in this call or later on any thread; the guard
  // lives until then. If `start` is an error it reports that for each instead.
  std::function<void(const SessionGuard& session, uint32_t first, uint32_t end, const absl::Status& start,
                     const std::function<void()>& then)>
      run;
  // Called after the last item; may be null.
  std::function<void()> done;
};

// A request of many items, done in short pieces, so that the work of other owners runs in between and the end of the
// session is detected. A short request, of one piece that is not slow, is done at once; others on workers. Items begin
// in order.
// Lifetime: shared by the jobs that are queued.
// Threads: safe.
class RequestTurns : public std::enable_shared_from_this<RequestTurns> {
 public:
  // With SESSION_ENDING for `start` from the end of the session on.
  static void Run(SessionRequests& requests, ItemPlan plan);
  // The same on workers, however short it is.
  static void Queue(SessionRequests& requests, ItemPlan plan);
  static bool IsLong(const SessionRequests& requests, const ItemPlan& plan);

  RequestTurns(SessionRequests& requests, ItemPlan plan)
      : requests_(requests), held_(std::make_shared<SessionGuard>(requests.lease().Hold())), plan_(std::move(plan)) {}

 private:
  struct Piece {
    uint32_t first = 0;
    uint32_t end = 0;
    uint64_t bytes = 0;
  };

  static Piece PieceFrom(const SessionRequests& requests, const ItemPlan& plan, uint32_t first);
  // Empty when all items have been taken.
  Piece TakePiece();
  void QueueTurn();
  void TakeTurn(const absl::Status& start);
  // `then`: what follows; may be null.
  void Do(const Piece& piece, const absl::Status& start, const std::function<void()>& then);

  SessionRequests& requests_;
  const std::shared_ptr<SessionGuard> held_;
  const ItemPlan plan_;
  std::atomic<uint32_t> finished_{0};

  Mutex mutex_;
  uint32_t next_ RNICD_GUARDED_BY(mutex_) = 0;
};

}  // namespace rnicd::core
